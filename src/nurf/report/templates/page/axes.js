// Coordinates of pictures: straight, logarithms, or asinh for values of both signs.
const FORWARD = {
  linear: (x) => x,
  log: (x, unit, floor) => Math.log(Math.max(x, floor)),
  asinh: (x, unit) => Math.asinh(x / unit),
};
const BACK = { linear: (u) => u, log: Math.exp, asinh: (u, unit) => unit * Math.sinh(u) };

class Axis {
  constructor({ low, high, kind = "linear", unit = 1 }) {
    Object.assign(this, { kind, unit, floor: low > 0 ? low : Number.MIN_VALUE });
    [this.start, this.end] = [low, high].map((x) => this.forward(x));
    if (!(this.end > this.start)) {
      const room = Math.abs(this.start) * 1e-3 || 0.5;
      [this.start, this.end] = [this.start - room, this.end + room];
    }
  }
  forward(x) {
    return FORWARD[this.kind](x, this.unit, this.floor);
  }
  // Between 0 and 1 on the axis.
  place(x) {
    return (this.forward(x) - this.start) / (this.end - this.start);
  }
  at(share) {
    return BACK[this.kind](this.start + share * (this.end - this.start), this.unit);
  }
  // How fast numbers change along the axis.
  slope(share) {
    const x = this.at(share), span = this.end - this.start;
    return span * (this.kind === "log" ? x : this.kind === "asinh" ? Math.hypot(x, this.unit) : 1);
  }
  padded(room = 0.04) {
    const padded = Object.assign(Object.create(Axis.prototype), this), span = this.end - this.start;
    padded.floor = Number.MIN_VALUE;
    [padded.start, padded.end] = [this.start - room * span, this.end + room * span];
    return padded;
  }
  ticks(count) {
    return this.kind === "linear" ? this.straight(count) : this.decades(count);
  }
  straight(count) {
    const span = this.end - this.start, power = 10 ** Math.floor(Math.log10(span / count));
    const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => span / s <= count);
    const first = Math.ceil(this.start / step - 1e-9);
    const found = [];
    for (let i = first; i * step <= this.end + 1e-9 * span; i++) found.push(Number((i * step).toPrecision(12)));
    return found;
  }
  // Powers of ten, with their multiples by 2 and 5 if there are few, and without some of them if there are many.
  decades(count) {
    const [low, high] = [this.at(0), this.at(1)], least = this.kind === "asinh" ? this.unit / 2 : 0;
    const signs = this.kind === "asinh" ? [-1, 1] : [1], found = [0];
    const end = Math.ceil(Math.log10(Math.max(Math.abs(low), Math.abs(high))));
    const start = Math.max(end - 330, Math.floor(Math.log10(Math.max(least, this.kind === "log" ? low : 0, 1e-300))));
    for (let e = start; e <= end; e++) for (const m of [1, 2, 5]) for (const sign of signs) found.push(sign * Number(`${m}e${e}`));
    const seen = found.filter((x) => x >= low - 1e-9 * Math.abs(low) && x <= high + 1e-9 * Math.abs(high));
    const kept = seen.filter((x) => (x === 0 ? this.kind === "asinh" : Math.abs(x) >= least)).sort((a, b) => a - b);
    if (kept.length <= count + 1) return kept.length > 1 ? kept : [0.1, 0.9].map((share) => Number(this.at(share).toPrecision(2)));
    const powers = kept.filter((x) => x === 0 || Number.isInteger(Number(Math.log10(Math.abs(x)).toFixed(9))));
    const few = powers.length > 1 ? powers : kept, every = Math.ceil(few.length / (count + 1));
    return few.filter((x, i) => x === 0 || i % every === 0);
  }
}

const INPUT_AXES = DATA.inputs.map((each) => new Axis(each));
