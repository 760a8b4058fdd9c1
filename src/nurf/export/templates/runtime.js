const { abs, cosh, exp, log, log1p, max, sinh, sqrt, tanh } = Math;
const sigmoid = (u) => (u > 0 ? 1 / (1 + exp(-u)) : exp(u) / (1 + exp(u)));
const softplus = (u) => max(u, 0) + log1p(exp(-abs(u)));
const at_least = (u, lowest) => (u > lowest ? u : lowest);
const step = (u) => (u > 0 ? 1 : 0);

// The normal distribution function, from (1 + 2 z) exp(z^2) erfc(z) as a Chebyshev series in (z - 3.75) / (z + 3.75).
function ndtr(u) {
  const z = abs(u) * Math.SQRT1_2;
  if (z > 40) return u > 0 ? 1 : 0;
  const t = (z - 3.75) / (z + 3.75);
  let above = 0, last = 0;
  for (let n = ERFCX.length - 1; n > 0; n--) [last, above] = [2 * t * last - above + ERFCX[n], last];
  const tail = (0.5 * exp(-z * z) * (t * last - above + ERFCX[0])) / (1 + 2 * z);
  return u > 0 ? 1 - tail : tail;
}

// Doubles from their bytes, so that none is rounded.
function numbers(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float64Array.from({ length: bytes.length / 8 }, (_, i) => view.getFloat64(8 * i, true));
}

function dot(a, i, b, j, n) {
  let sum = 0;
  for (let l = 0; l < n; l++) sum += a[i + l] * b[j + l];
  return sum;
}

// A matrix, row after row, times a vector.
function times(matrix, z) {
  const n = z.length;
  return Float64Array.from({ length: matrix.length / n }, (_, i) => dot(matrix, i * n, z, 0, n));
}

// Layers of neurons, the weights of one neuron after the other.
function layers({ weights, biases, outer, unit, slope }) {
  return (z, y, g) => {
    const slopes = [];
    let state = z;
    weights.forEach((w, l) => {
      const n = state.length, bias = biases[l], m = bias.length;
      const next = new Float64Array(m), bent = new Float64Array(g ? m : 0);
      for (let j = 0; j < m; j++) {
        const u = bias[j] + dot(w, j * n, state, 0, n);
        next[j] = unit(u);
        if (g) bent[j] = slope(u);
      }
      slopes.push(bent);
      state = next;
    });
    const m = state.length;
    for (let k = 0; k < y.length; k++) {
      y[k] = dot(outer, k * m, state, 0, m);
      if (!g) continue;
      let row = outer.subarray(k * m, k * m + m);
      for (let l = weights.length - 1; l >= 0; l--) {
        const w = weights[l], bent = slopes[l], n = w.length / bent.length, below = new Float64Array(n);
        for (let j = 0; j < bent.length; j++) {
          const factor = row[j] * bent[j];
          for (let i = 0; i < n; i++) below[i] += factor * w[j * n + i];
        }
        row = below;
      }
      g.set(row, k * z.length);
    }
  };
}

// Calls visit(value, slopes, a) for a kernel and its derivatives at each point of a term; u = A z.
function functionals({ points, directions }, phi, u, bent, visit) {
  const q = u.length, w = new Float64Array(q), slopes = new Float64Array(bent ? q : 0);
  const [v, s] = directions;
  for (let a = 0; a < points.length / q; a++) {
    const o = a * q;
    for (let i = 0; i < q; i++) w[i] = u[i] - points[o + i];
    const t = 0.5 * dot(w, 0, w, 0, q);
    let value;
    if (!v) {
      value = phi[0](t);
      if (bent) {
        const first = phi[1](t);
        for (let i = 0; i < q; i++) slopes[i] = first * w[i];
      }
    } else if (!s) {
      const along = dot(w, 0, v, o, q), first = phi[1](t);
      value = -first * along;
      if (bent) {
        const second = phi[2](t) * along;
        for (let i = 0; i < q; i++) slopes[i] = -(first * v[o + i] + second * w[i]);
      }
    } else {
      const x = dot(w, 0, v, o, q), y = dot(w, 0, s, o, q), both = dot(v, o, s, o, q), second = phi[2](t);
      value = second * x * y + phi[1](t) * both;
      if (bent) {
        const third = phi[3](t) * x * y;
        for (let i = 0; i < q; i++)
          slopes[i] = third * w[i] + second * (y * v[o + i] + x * s[o + i] + both * w[i]);
      }
    }
    visit(value, slopes, a);
  }
}

// Sums of a kernel and its derivatives at points.
function sums({ matrix, phi, terms }) {
  return (z, y, g) => {
    const u = times(matrix, z), q = u.length, h = new Float64Array(g ? y.length * q : 0);
    y.fill(0);
    for (const term of terms)
      functionals(term, phi, u, g, (value, slopes, a) => {
        for (let k = 0; k < y.length; k++) {
          const c = term.coef[a * y.length + k];
          y[k] += c * value;
          if (g) for (let i = 0; i < q; i++) h[k * q + i] += c * slopes[i];
        }
      });
    if (!g) return;
    for (let k = 0; k < y.length; k++)
      for (let j = 0; j < z.length; j++) {
        let sum = 0;
        for (let i = 0; i < q; i++) sum += h[k * q + i] * matrix[i * z.length + j];
        g[k * z.length + j] = sum;
      }
  };
}

function total(parts) {
  return (z, y, g) => {
    const values = new Float64Array(y.length), slopes = g && new Float64Array(g.length);
    y.fill(0);
    g?.fill(0);
    for (const part of parts) {
      part(z, values, slopes);
      for (let k = 0; k < y.length; k++) y[k] += values[k];
      if (g) for (let i = 0; i < g.length; i++) g[i] += slopes[i];
    }
  };
}

// A network with its polynomial, as a function of z; returns the values, and writes the gradients to g.
function network({ core, constant, slopes, factors, products }) {
  const k = constant.length;
  return (z, g) => {
    const y = new Float64Array(k), d = z.length;
    core(z, y, g);
    for (let j = 0; j < k; j++) {
      y[j] += constant[j];
      for (let i = 0; i < d; i++) {
        y[j] += z[i] * slopes[i * k + j];
        if (g) g[j * d + i] += slopes[i * k + j];
      }
    }
    factors.forEach((list, t) => {
      const inner = list.filter((i) => i < d);
      for (let j = 0; j < k; j++) {
        const c = products[t * k + j];
        y[j] += inner.reduce((product, i) => product * z[i], c);
        if (g)
          inner.forEach((i, place) => {
            g[j * d + i] += inner.reduce((product, l, at) => (at === place ? product : product * z[l]), c);
          });
      }
    });
    return y;
  };
}

// How much fits without each fold differ from the fit to all samples.
function foldVariances({ folds, multiple, least, floor }) {
  return (z, _, bare) =>
    least.map((c, k) => {
      let sum = 0;
      for (const fold of folds) sum += (fold(z)[k] - bare[k] / Y_SCALE[k]) ** 2;
      return c * c + max(0, (multiple * sum) / folds.length - floor[k]);
    });
}

// The variance of ridge regression in the Bayesian view.
function coefficientVariances({ factor, unit, noise }) {
  return (z) => {
    const outer = factor(z), share = 1 + unit * dot(outer, 0, outer, 0, outer.length);
    return noise.map((s) => share * s * s);
  };
}

// Functionals to rows: the last rows are sums of functionals, in compressed form.
function gathered(features, { ends, places, coef }) {
  const single = features.length - coef.length;
  const rows = ends.map((end, row) => {
    let sum = 0;
    for (let i = row ? ends[row - 1] : 0; i < end; i++) sum += coef[i] * features[single + places[i]];
    return sum;
  });
  return Float64Array.from([...features.slice(0, single), ...rows]);
}

// The variance of one Gaussian process given the data; L is packed, row after row.
function processVariance({ matrix, phi, terms, sums, V, T, R, first, L, prior, least, noise }) {
  return (scaled) => {
    const t = sqrt(R.length), n = V.length / t, u = times(matrix, scaled), m = new Float64Array(t), features = [];
    for (const term of terms) functionals(term, phi, u, false, (value) => features.push(value));
    const c = sums ? gathered(features, sums) : Float64Array.from(features);
    for (let i = 0; i < t; i++) {
      m[i] = i ? scaled[i - 1] : 1;
      for (let j = 0; j < i; j++) m[i] -= R[j * t + i] * m[j];
      m[i] /= R[i * t + i];
    }
    const p = new Float64Array(t);
    for (let a = 0; a < n; a++) for (let i = 0; i < t; i++) p[i] += V[a * t + i] * c[a];
    for (let i = 0; i < t; i++) {
      let q = 0;
      for (let j = 0; j < t; j++) q += T[j * t + i] * p[j];
      for (let a = 0; a < n; a++) c[a] -= V[a * t + i] * q;
    }
    let variance = prior;
    for (let i = 0; i < t; i++) {
      variance -= 2 * c[i] * m[i];
      for (let j = 0; j < t; j++) variance += m[i] * first[i * n + j] * m[j];
      for (let a = t; a < n; a++) c[a] -= first[i * n + a] * m[i];
    }
    let row = 0;
    for (let a = t; a < n; a++) {
      const size = a - t;
      c[a] = (c[a] - dot(L, row, c, t, size)) / L[row + size];
      variance -= c[a] * c[a];
      row += size + 1;
    }
    return max(variance, least) + noise;
  };
}

// A mixture of processes, whose errors grow with a power of its standard deviations.
function processVariances({ members, weights, factors, power, unit, smallest, largest }) {
  return (z, scaled) => {
    const means = members.map((member) => member.mean(z)), spreads = members.map((member) => member.variance(scaled));
    return factors.map((factor, k) => {
      let mean = 0, sum = 0;
      weights.forEach((w, i) => (mean += w * means[i][k]));
      weights.forEach((w, i) => (sum += w * (spreads[i] * members[i].scale[k] + (means[i][k] - mean) ** 2)));
      const grown = (Math.min(max(sqrt(sum), smallest[k]), largest[k]) / unit[k]) ** power;
      return factor * factor * grown * grown * sum;
    });
  };
}

// What is added beyond the reach of the samples.
function reachVariance({ points, metric, radius4 }) {
  return (scaled) => {
    const r = scaled.length;
    let nearest = Infinity;
    for (let a = 0; a < points.length; a += r) {
      let square = 0;
      for (let i = 0; i < r; i++) square += (scaled[i] * metric[i] - points[a + i]) ** 2;
      if (square < nearest) nearest = square;
    }
    return max(0, nearest * nearest - radius4);
  };
}

// Inputs after their logarithms, less the centre of the data.
function centred(x) {
  if (x.length !== inputs) throw new RangeError(`expected ${inputs} numbers, got ${x.length}`);
  return Float64Array.from(CENTER, (center, i) => {
    const number = Number(x[i]);
    if (!Number.isFinite(number)) throw new RangeError(`expected finite numbers, got ${x[i]} as input ${i}`);
    if (LOGGED[i] && !(number > 0)) throw new RangeError(`input ${i} has a logarithm and must be positive, got ${x[i]}`);
    return (LOGGED[i] ? log(number) : number) - center;
  });
}

const CURVES = {
  none: [(u) => u, () => 1],
  log: [exp, exp],
  asinh: [sinh, cosh],
};
const back = (u, k) => CURVES[TARGETS[k]][0](u) * T_SCALE[k];
const shaped = (values) => (several ? Array.from(values) : values[0]);

function evaluated(x, bent) {
  const z = centred(x), g = bent ? new Float64Array(inputs * outputs) : null;
  const warped = MODEL(z, g).map((y, k) => y + CONSTANT[k]);
  const y = warped.map(back);
  const rows = Array.from({ length: bent ? outputs : 0 }, (_, k) => {
    const slope = CURVES[TARGETS[k]][1](warped[k]) * T_SCALE[k];
    return Array.from({ length: inputs }, (_, i) => (g[k * inputs + i] * slope) / (LOGGED[i] ? x[i] : 1));
  });
  return [shaped(y), bent ? shaped(rows) : null];
}

// The values before the curves of the outputs, and their standard deviations there.
function spread(x) {
  if (!hasStd) throw new Error(NO_STD);
  const z = centred(x), bare = MODEL(z, null), scaled = times(TO_SCALED, z), beyond = REACH(scaled);
  const variances = SPREAD(z, scaled, bare);
  const deviations = variances.map((v, k) => Y_SCALE[k] * sqrt(v + beyond * RATES[k] * RATES[k]));
  return [bare.map((y, k) => y + CONSTANT[k]), deviations];
}

/** The value at a point: a number, or an array of numbers for several outputs. */
export function value(x) {
  return evaluated(x, false)[0];
}

/** The partial derivatives at a point; for several outputs an array for each of them. */
export function gradient(x) {
  return evaluated(x, true)[1];
}

/** The value and the gradient at a point. */
export function valueAndGradient(x) {
  return evaluated(x, true);
}

/** The standard deviation of a new measurement at a point, noise included. */
export function std(x) {
  const [u, s] = spread(x);
  return shaped(u.map((v, k) => (back(v + s[k], k) - back(v - s[k], k)) / 2));
}

/** The values some standard deviations below and above, by default 1.645 for nine of ten normal values. */
export function interval(x, deviations = 1.6448536269514722) {
  const [u, s] = spread(x);
  return shaped(Array.from(u, (v, k) => [-1, 1].map((side) => back(v + side * deviations * s[k], k))));
}
