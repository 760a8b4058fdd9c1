const CANDIDATES = 400, STARTS = 12, STEPS = 300;

// Points that fill the unit cube: multiples of powers of the root of x^(d+1) = x + 1, modulo one.
function spread01(count, d) {
  let root = 1.5;
  for (let i = 0; i < 60; i++) root = (1 + root) ** (1 / (d + 1));
  return Array.from({ length: count }, (_, n) => Array.from({ length: d }, (_, j) => (0.5 + (n + 1) * root ** -(j + 1)) % 1));
}

const clipped = (shares) => shares.map((share) => Math.min(1, Math.max(0, share)));

// The value of one output on its axis, and its gradient, in shares of the ranges of the inputs.
function heightAt(shares, k, sign) {
  const x = shares.map((share, j) => INPUT_AXES[j].at(share)), [y, g] = valueAndGradient(x);
  const [u, slopes] = several ? [y[k], g[k]] : [y, g];
  return { height: sign * u, slope: slopes.map((s, j) => sign * s * INPUT_AXES[j].slope(shares[j])), value: u };
}

// Projected gradient descent with steps of Barzilai and Borwein, each shortened until the value falls enough.
function* descend(start, k, sign) {
  let at = clipped(start), here = heightAt(at, k, sign);
  const size = () => Math.max(...here.slope.map(Math.abs));
  let step = 0.1 / (size() || 1);
  for (let n = 0; n < STEPS; n++) {
    const target = clipped(at.map((share, j) => share - step * here.slope[j]));
    const move = target.map((share, j) => share - at[j]);
    const gain = move.reduce((sum, m, j) => sum + m * here.slope[j], 0);
    if (Math.max(...move.map(Math.abs)) < 1e-10 || gain === 0) break;
    let factor = 1, next, there;
    for (; factor > 1e-10; factor /= 2) {
      next = at.map((share, j) => share + factor * move[j]);
      there = heightAt(next, k, sign);
      if (there.height <= here.height + 1e-4 * factor * gain) break;
    }
    if (!(there.height < here.height)) break;
    const bend = move.reduce((sum, m, j) => sum + factor * m * (there.slope[j] - here.slope[j]), 0);
    const square = move.reduce((sum, m) => sum + (factor * m) ** 2, 0);
    step = bend > 0 ? square / bend : Math.min(2 * step, 1e6 / (size() || 1));
    [at, here] = [next, there];
    yield;
  }
  return { at, ...here };
}

// The smallest value over the ranges of the samples, or the largest with sign -1, from many starts.
function* optimum(point, k, sign) {
  const d = point.length, starts = [clipped(point.map((x, j) => INPUT_AXES[j].place(x)))];
  const tried = [];
  for (const shares of spread01(CANDIDATES, d)) {
    tried.push({ shares, height: heightAt(shares, k, sign).height });
    yield;
  }
  for (const { x } of DATA.samples) {
    const shares = clipped(x.map((number, j) => INPUT_AXES[j].place(number)));
    tried.push({ shares, height: heightAt(shares, k, sign).height });
    yield;
  }
  tried.sort((a, b) => a.height - b.height);
  for (const { shares } of tried) {
    const apart = (other) => Math.max(...shares.map((share, j) => Math.abs(share - other[j])));
    if (starts.length < STARTS && starts.every((other) => apart(other) > 0.1)) starts.push(shares);
  }
  const ends = [];
  for (const start of starts) ends.push(yield* descend(start, k, sign));
  ends.sort((a, b) => a.height - b.height);
  const [best] = ends, span = ends.at(-1).height - best.height;
  const close = ends.filter((end) => end.height - best.height <= 1e-6 * (Math.abs(best.height) + span)).length;
  return { x: best.at.map((share, j) => INPUT_AXES[j].at(share)), value: best.value, starts: starts.length, close };
}
