"""CUDA C that fits thousands of experiments at once, a block of threads each.

All is done on Gram matrices [Y, τ]ᵀ[Y, τ] of every joint and stretch: weighted least
squares, its delete-a-stretch jackknife, and ordinary least squares with the textbook
covariance. Matrices are packed lower triangles over (base parameters, torque).
"""

from __future__ import annotations

THREADS = 128
"""Threads that share one experiment."""

DIRECTION = """\
/* Sign of every drive's speed, averaged over each sample's own time step, as
   recordings.filters.averaged_sign; speeds and signs: drives x length x runs. */
static __forceinline__ double known_sign(double v, double dead) {
  return fabs(v) > dead ? (v > 0.0 ? 1.0 : -1.0) : 0.0;
}

static __forceinline__ double drive_speed(const double *__restrict__ qd,
    const double *__restrict__ weights, long long step, int dof)
{
  double speed = 0.0;
  for (int i = 0; i < dof; i++)
    if (weights[i] != 0.0) speed += weights[i] * qd[i * step];
  return speed;
}

extern "C" __global__ void direction(long long runs, long long length, long long dof,
    const double *__restrict__ weights, const double *__restrict__ dead,
    const double *__restrict__ qd, double *__restrict__ out)
{
  const long long across = (runs + blockDim.x - 1) / blockDim.x;
  const long long run = blockIdx.x % across * blockDim.x + threadIdx.x;
  const long long i = blockIdx.x / across % length;
  const long long drive = blockIdx.x / across / length;
  if (run >= runs) return;
  const double *w = weights + drive * dof, *at = qd + i * runs + run;
  const double now = drive_speed(at, w, length * runs, dof);
  double sign = known_sign(now, dead[drive]);
  if (i > 0) {
    const double before = drive_speed(at - runs, w, length * runs, dof);
    const double share = before / (before - now);
    if (known_sign(before, dead[drive]) * known_sign(now, dead[drive]) < 0.0
        && share >= 0.5) sign *= 2.0 * (1.0 - share);
  }
  if (i + 1 < length) {
    const double after = drive_speed(at + runs, w, length * runs, dof);
    const double share = now / (now - after);
    if (known_sign(now, dead[drive]) * known_sign(after, dead[drive]) < 0.0
        && share < 0.5) sign *= 2.0 * share;
  }
  out[(drive * length + i) * runs + run] = sign;
}

/* 1, or 0 while friction on a joint reverses, as Columns.trust; signs: what the torque
   shows of friction's direction; out: joints x length x runs. */
extern "C" __global__ void trust(long long runs, long long length, long long dof,
    long long drives, const double *__restrict__ weights,
    const double *__restrict__ dead, const double *__restrict__ sure,
    const double *__restrict__ qd, const double *__restrict__ signs,
    double *__restrict__ out)
{
  const long long across = (runs + blockDim.x - 1) / blockDim.x;
  const long long run = blockIdx.x % across * blockDim.x + threadIdx.x;
  const long long at = blockIdx.x / across * runs + run, step = length * runs;
  if (run >= runs) return;
  for (int i = 0; i < dof; i++) out[i * step + at] = 1.0;
  for (int k = 0; k < drives; k++) {
    const double *w = weights + k * dof;
    if (fabs(drive_speed(qd + at, w, step, dof)) > dead[k]
        && fabs(signs[k * step + at]) < sure[k])
      for (int i = 0; i < dof; i++)
        if (w[i] != 0.0) out[i * step + at] = 0.0;
  }
}
"""

_FIT = """\
#define PACKED ((B + 1) * (B + 2) / 2)
#define AT(r, c) ((r) * ((r) + 1) / 2 + (c))
#define MOST_SHARE 0.95
#define SMALLEST_PIVOT 1e-6 /* of unit columns: nothing of it is left in a square */

typedef struct {
  double H[PACKED], L[PACKED];
  double scale[B + 1], x[B + 1], y[B + 1], variance[B], beta[B];
  double weight[J], power[J];
  short row[PACKED], column[PACKED];
  int is_singular;
} Fit;

/* Sum of the joints' Gram matrices, each by its weight. */
static void assemble(const Fit *f, const double *gram, const int *place, double *M) {
  for (int p = threadIdx.x; p < PACKED; p += THREADS) {
    double sum = 0.0;
    for (int j = 0; j < J; j++) {
      const int at = place[j * PACKED + p];
      if (at >= 0) sum += f->weight[j] * gram[at];
    }
    M[p] = sum;
  }
  __syncthreads();
}

/* Factors L, columns scaled to one, its last row the right-hand side; x solves it. */
static void solve(Fit *f) {
  const int me = threadIdx.x;
  double *const L = f->L;
  for (int r = me; r <= B; r += THREADS)
    f->scale[r] = r < B && L[AT(r, r)] > 0.0 ? rsqrt(L[AT(r, r)]) : 1.0;
  __syncthreads();
  for (int p = me; p < PACKED; p += THREADS)
    L[p] *= f->scale[f->row[p]] * f->scale[f->column[p]];
  for (int k = 0; k < B; k++) {
    __syncthreads();
    const double pivot = sqrt(L[AT(k, k)]);
    if (!(pivot > SMALLEST_PIVOT)) f->is_singular = 1;
    __syncthreads();
    for (int r = k + me; r <= B; r += THREADS) L[AT(r, k)] /= pivot;
    __syncthreads();
    for (int p = AT(k + 1, 0) + me; p < PACKED; p += THREADS)
      if (f->column[p] > k) L[p] -= L[AT(f->row[p], k)] * L[AT(f->column[p], k)];
  }
  __syncthreads();
  for (int k = me; k < B; k += THREADS) f->y[k] = L[AT(B, k)];
  for (int k = B - 1; k >= 0; k--) {
    __syncthreads();
    const double value = f->y[k] / L[AT(k, k)];
    if (me == 0) f->x[k] = value;
    for (int r = me; r < k; r += THREADS) f->y[r] -= L[AT(k, r)] * value;
  }
  __syncthreads();
  for (int k = me; k < B; k += THREADS) f->x[k] *= f->scale[k];
  __syncthreads();
}

/* Sum of squared residuals of every joint. */
static void residuals(Fit *f, const double *gram, const int *place) {
  const int me = threadIdx.x;
  if (me == 0) f->x[B] = -1.0;
  for (int j = me; j < J; j += THREADS) f->power[j] = 0.0;
  __syncthreads();
  for (int j = 0; j < J; j++) {
    double sum = 0.0;
    for (int p = me; p < PACKED; p += THREADS) {
      const int at = place[j * PACKED + p], r = f->row[p], c = f->column[p];
      if (at >= 0) sum += (r == c ? 1.0 : 2.0) * gram[at] * f->x[r] * f->x[c];
    }
    for (int half = 16; half; half /= 2) sum += __shfl_down_sync(~0u, sum, half);
    if (me % 32 == 0) atomicAdd(&f->power[j], sum);
  }
  __syncthreads();
}

/* Diagonal of the inverse of what was factored. */
static void inverse_diagonal(const Fit *f, double *diagonal) {
  for (int r = threadIdx.x; r < B; r += THREADS) {
    double z[B], sum = 0.0;
    for (int i = r; i < B; i++) {
      double value = i == r ? 1.0 : 0.0;
      for (int k = r; k < i; k++) value -= f->L[AT(i, k)] * z[k];
      z[i] = value / f->L[AT(i, i)];
      sum += z[i] * z[i];
    }
    diagonal[r] = sum * f->scale[r] * f->scale[r];
  }
  __syncthreads();
}

static void ordinary(Fit *f, const double *gram, const int *place, double samples,
                     long long runs, double *out)
{
  for (int j = threadIdx.x; j < J; j += THREADS) f->weight[j] = 1.0;
  __syncthreads();
  assemble(f, gram, place, f->L);
  solve(f);
  residuals(f, gram, place);
  double noise = 0.0;
  for (int j = 0; j < J; j++) noise += f->power[j] / (samples * J);
  inverse_diagonal(f, f->variance);
  for (int k = threadIdx.x; k < B; k += THREADS) {
    out[(2 * B + k) * runs] = f->x[k];
    out[(3 * B + k) * runs] = sqrt(noise * f->variance[k]);
  }
  __syncthreads();
}

static void weighted(Fit *f, const double *gram, const int *place, double samples) {
  for (int j = threadIdx.x; j < J; j += THREADS)
    f->weight[j] = samples / gram[place[j * PACKED + PACKED - 1]];
  __syncthreads();
  for (int round = 0; round <= ROUNDS; round++) {
    assemble(f, gram, place, f->H);
    for (int p = threadIdx.x; p < PACKED; p += THREADS) f->L[p] = f->H[p];
    __syncthreads();
    solve(f);
    if (round == ROUNDS) return;
    residuals(f, gram, place);
    for (int j = threadIdx.x; j < J; j += THREADS)
      f->weight[j] = samples / f->power[j];
    __syncthreads();
  }
}

/* What the solution would be without one stretch, less what it is: adds its square. */
static void leave_out(Fit *f, const double *gram, const int *place) {
  const int me = threadIdx.x;
  assemble(f, gram, place, f->L);
  for (int r = me; r < B; r += THREADS) {
    double sum = f->L[AT(B, r)];
    for (int c = 0; c < B; c++)
      sum -= f->L[r >= c ? AT(r, c) : AT(c, r)] * f->beta[c];
    f->y[r] = sum;
  }
  __syncthreads();
  for (int p = me; p < PACKED; p += THREADS)
    f->L[p] = f->row[p] == B && f->column[p] < B ? f->y[f->column[p]]
                                                 : f->H[p] - MOST_SHARE * f->L[p];
  __syncthreads();
  solve(f);
  for (int k = me; k < B; k += THREADS) f->variance[k] += f->x[k] * f->x[k];
  __syncthreads();
}

/* gram: runs x stretches x ENTRIES; total: runs x ENTRIES, to work in;
   place: for every joint and packed entry its place among ENTRIES, or -1;
   out: (weighted value, its std, ordinary value, its std) x B x runs; not a number
   where the data do not determine the parameters. */
extern "C" __global__ void __launch_bounds__(THREADS) fit(long long runs,
    long long stretches, long long samples, const double *__restrict__ gram,
    double *total, const int *__restrict__ place, double *__restrict__ out)
{
  extern __shared__ double memory[];
  Fit *const f = (Fit *)memory;
  const int me = threadIdx.x;
  const long long run = blockIdx.x;
  const double *const mine = gram + run * stretches * ENTRIES;
  double *const whole = total + run * ENTRIES;
  for (int k = me; k < ENTRIES; k += THREADS) {
    double sum = 0.0;
    for (long long s = 0; s < stretches; s++) sum += mine[s * ENTRIES + k];
    whole[k] = sum;
  }
  for (int r = me; r <= B; r += THREADS)
    for (int c = 0; c <= r; c++) { f->row[AT(r, c)] = r; f->column[AT(r, c)] = c; }
  if (me == 0) f->is_singular = 0;
  __syncthreads();
  out += run;
  ordinary(f, whole, place, (double)samples, runs, out);
  weighted(f, whole, place, (double)samples);
  for (int k = me; k < B; k += THREADS) {
    out[k * runs] = f->beta[k] = f->x[k];
    f->variance[k] = 0.0;
  }
  __syncthreads();
  for (long long s = 0; s < stretches; s++) leave_out(f, mine + s * ENTRIES, place);
  const double share = (stretches - 1.0) / stretches;
  for (int k = me; k < B; k += THREADS) {
    out[(B + k) * runs] = sqrt(f->variance[k] * share);
    if (f->is_singular) out[k * runs] = out[(2 * B + k) * runs] = nan("");
  }
}
"""


def fit_source(base: int, joints: int, entries: int, rounds: int) -> str:
    """Return CUDA C of `fit`.

    Args:
        base: Base parameters.
        joints: Joints.
        entries: Numbers that hold the Gram matrices of a stretch.
        rounds: How often the weights are renewed.
    """
    numbers = {
        "B": base,
        "J": joints,
        "ENTRIES": entries,
        "ROUNDS": rounds,
        "THREADS": THREADS,
    }
    defines = [f"#define {name} {value}" for name, value in numbers.items()]
    return "\n".join([*defines, _FIT])


def fit_shared_bytes(base: int, joints: int) -> int:
    """Shared memory of an experiment in bytes."""
    packed = (base + 1) * (base + 2) // 2
    doubles = 2 * packed + 3 * (base + 1) + 2 * base + 2 * joints
    return 8 * doubles + 2 * 2 * packed + 16
