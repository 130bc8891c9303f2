"""The integrators in C, over a type V; see stepper_source."""

from __future__ import annotations

ONE_HELPERS = """\
typedef long long M;
#define ZERO 0.0
#define LESS(a, b) (-(M)((a) < (b)))
static inline V pick(M m, V a, V b) { return m ? a : b; }
static inline int any(M m) { return m != 0; }
static inline V all_of(double x) { return x; }
static inline V magnitude(V x) { return fabs(x); }
static inline V root(V x) { return sqrt(x); }
static inline double largest(V x) { return x; }
"""

LANE_HELPERS = """\
typedef L M;
#define ZERO ((V){0})
#define LESS(a, b) ((a) < (b))
static inline V pick(M m, V a, V b) { return (V)((m & (L)a) | (~m & (L)b)); }
static inline int any(M m) { return any_lane(m); }
static inline V all_of(double x) { return ZERO + x; }
static inline V magnitude(V x) { return pick(x < 0.0, -x, x); }
static inline V root(V x) { return sqrt_v(x); }
static inline double largest(V x) {
  double m = 0.0;
  for (int k = 0; k < (int)(sizeof x / 8); k++) if (x[k] > m) m = x[k];
  return m;
}
"""

STEPPER = """\
#define MOTION (ELASTIC ? 4 * N : 2 * N)
#define SWEEPS 200

/* Eight arms, or one: motion y = (q, qd, then motors'), and all that stays fixed. */
typedef struct {
  V y[4 * N], tau[N], f[R], qdd[N], link[N];
  V drive[T * R], spring[2 * N], body[G + C + 1];
} Arms;

#define INERTIA(a, k) (a)->drive[k]
#define VISCOUS(a, k) (a)->drive[R + k]
#define COULOMB(a, k) (a)->drive[2 * R + k]
#define STATIC(a, k) (a)->drive[3 * R + k]
#define STRIBECK(a, k) (a)->drive[4 * R + k]
#define OFFSET(a, k) (a)->drive[5 * R + k]

static inline V at_most(V x, V bound) {
  x = pick(LESS(bound, x), bound, x);
  return pick(LESS(x, -bound), -bound, x);
}

static inline V dry_level(const Arms *a, int k, V u) {
  const V r = u / STRIBECK(a, k);
  return COULOMB(a, k) + (STATIC(a, k) - COULOMB(a, k)) / (1.0 + r * r);
}

/* Solves (M + diag(added)) qdd = torque - C qd - g. */
static inline void accelerate(const Arms *a, const V *q, const V *qd, const V *torque,
                              const V *added, V *qdd) {
  V x[4 * N + G + C + 1];
  for (int i = 0; i < N; i++) {
    x[i] = q[i]; x[N + i] = qd[i]; x[2 * N + i] = torque[i]; x[3 * N + i] = added[i];
  }
  for (int i = 0; i < G + C; i++) x[4 * N + i] = a->body[i];
  core_accelerate(x, 0, qdd);
}

static void mobility(const Arms *a, const V *q, const V *added, V *W) {
  V x[2 * N + G + C + 1], w[N * (N + 1) / 2];
  for (int i = 0; i < N; i++) { x[i] = q[i]; x[N + i] = added[i]; }
  for (int i = 0; i < G + C; i++) x[2 * N + i] = a->body[i];
  core_mobility(x, 0, w);
  spread(w, W);
}

/* What drives with rotor inertia (joints' own only) add to the diagonal of M. */
static inline void diagonal(const Arms *a, double viscous, V *added) {
  for (int i = 0; i < N; i++) added[i] = ZERO;
  for (int k = 0; k < J; k++)
    for (int i = 0; i < N; i++)
      if (square[k * N + i] != 0.0)
        added[i] += square[k * N + i] * (INERTIA(a, k) + viscous * VISCOUS(a, k));
}

/* Torque on the joints from motor torques less what the drives lose. */
static inline void net_torque(const Arms *a, const V *u, const V *dry, V *t) {
  V lost[R];
  for (int k = 0; k < R; k++)
    lost[k] = -(VISCOUS(a, k) * u[k] + dry[k] + OFFSET(a, k));
  for (int i = 0; i < N; i++) t[i] = a->tau[i];
  add_drive_torques(lost, t);
}

/* Accelerations now. At rest dry friction is what the last step found it to be. */
static void accelerations(Arms *a, const V *y, const V *dry, V *qdd, V *mqdd) {
  V u[R], t[N], added[N];
  if (!ELASTIC) {
    drive_speeds(y + N, u);
    net_torque(a, u, dry, t);
    diagonal(a, 0.0, added);
    accelerate(a, y, y + N, t, added, qdd);
    return;
  }
  const V *mq = y + 2 * N, *mqd = y + 3 * N;
  for (int i = 0; i < N; i++) {
    added[i] = ZERO;
    t[i] = a->spring[i] * (mq[i] - y[i]) + a->spring[N + i] * (mqd[i] - y[N + i]);
    const V lost = VISCOUS(a, i) * mqd[i] + dry[i] + OFFSET(a, i) + t[i];
    mqdd[i] = (a->tau[i] - lost) / INERTIA(a, i);
  }
  accelerate(a, y, y + N, t, added, qdd);
}

/* Friction, accelerations and the torque that reaches the links, for the sensors. */
static void observe(Arms *a) {
  V u[R], dry[R], mqdd[N], rotor[R];
  if (ELASTIC) for (int i = 0; i < N; i++) u[i] = a->y[3 * N + i];
  else drive_speeds(a->y + N, u);
  for (int k = 0; k < R; k++) {
    const V level = dry_level(a, k, u[k]);
    dry[k] = pick(LESS(ZERO, u[k]), level,
                  pick(LESS(u[k], ZERO), -level, at_most(a->f[k], level)));
  }
  accelerations(a, a->y, dry, a->qdd, mqdd);
  if (ELASTIC) {
    for (int i = 0; i < N; i++)
      a->link[i] = a->spring[i] * (a->y[2 * N + i] - a->y[i])
                 + a->spring[N + i] * (a->y[3 * N + i] - a->y[N + i]);
    return;
  }
  net_torque(a, u, dry, a->link);
  drive_speeds(a->qdd, rotor);
  for (int k = 0; k < R; k++) rotor[k] = -INERTIA(a, k) * rotor[k];
  add_drive_torques(rotor, a->link);
}

/* ---- semi-implicit ------------------------------------------------------------ */

/* Finds dry friction f, |f| <= level, that opposes the new speeds u and holds those it
   can: u = u0 - h A (f - f0). Gauss-Seidel, which converges as A is positive. */
static void solve_dry(int size, double h, const V *A, const V *level, V *f, V *u) {
  for (int sweep = 0; sweep < SWEEPS; sweep++) {
    V change = ZERO;
    for (int k = 0; k < size; k++) {
      const V next = at_most(f[k] + u[k] / (h * A[k * size + k]), level[k]);
      const V step = pick(LESS(ZERO, level[k]), next - f[k], ZERO);
      for (int i = 0; i < size; i++) u[i] -= h * A[i * size + k] * step;
      f[k] += step;
      const V relative = magnitude(step) / (level[k] + 1e-300);
      change = pick(LESS(change, relative), relative, change);
    }
    if (largest(change) < 1e-12) return;
  }
}

/* Guesses friction from the speeds before the step: sliding goes on, rest stays. */
static inline void guess_dry(const Arms *a, const V *u, V *level, V *f) {
  for (int k = 0; k < R; k++) {
    level[k] = dry_level(a, k, u[k]);
    f[k] = pick(LESS(ZERO, u[k]), level[k],
                pick(LESS(u[k], ZERO), -level[k], at_most(a->f[k], level[k])));
  }
}

/* Whether some drive that can stick was not sliding one way before and after. */
static inline int is_wrong(const V *level, const V *before, const V *after) {
  M wrong = LESS(all_of(1.0), ZERO);
  for (int k = 0; k < R; k++)
    wrong |= LESS(ZERO, level[k]) & ~LESS(ZERO, before[k] * after[k]);
  return any(wrong);
}

static void rigid_step(Arms *a, double h) {
  V *q = a->y, *qd = a->y + N;
  V u[R], after[R], level[R], f0[R], f[R], t[N], added[N], qdd[N], qd1[N], mid[N];
  for (int i = 0; i < N; i++) mid[i] = q[i] + 0.5 * h * qd[i];
  drive_speeds(qd, u);
  guess_dry(a, u, level, f0);
  net_torque(a, u, f0, t);
  diagonal(a, h, added);
  accelerate(a, mid, qd, t, added, qdd);
  for (int i = 0; i < N; i++) qd1[i] = qd[i] + h * qdd[i];
  for (int k = 0; k < R; k++) f[k] = f0[k];
  drive_speeds(qd1, after);
  if (is_wrong(level, u, after)) {
    V W[N * N], A[R * R], WD[N * R], pull[R], back[N];
    mobility(a, mid, added, W);
    for (int k = 0; k < R; k++)
      for (int i = 0; i < N; i++) {
        WD[i * R + k] = ZERO;
        for (int j = 0; j < N; j++) WD[i * R + k] += W[i * N + j] * weight[k * N + j];
      }
    for (int k = 0; k < R; k++)
      for (int l = 0; l < R; l++) {
        A[k * R + l] = ZERO;
        for (int i = 0; i < N; i++) A[k * R + l] += weight[k * N + i] * WD[i * R + l];
      }
    solve_dry(R, h, A, level, f, after);
    for (int k = 0; k < R; k++) pull[k] = f[k] - f0[k];
    for (int i = 0; i < N; i++) {
      back[i] = ZERO;
      for (int k = 0; k < R; k++) back[i] += WD[i * R + k] * pull[k];
      qd1[i] -= h * back[i];
    }
    /* What friction holds stands still exactly, not to the last digit but one. */
    for (int k = 0; k < J; k++)
      for (int i = 0; i < N; i++)
        if (weight[k * N + i] != 0.0)
          qd1[i] = pick(LESS(magnitude(f[k]), level[k] * (1.0 - 1e-9)), ZERO, qd1[i]);
  }
  for (int i = 0; i < N; i++) { q[i] = mid[i] + 0.5 * h * qd1[i]; qd[i] = qd1[i]; }
  for (int k = 0; k < R; k++) a->f[k] = f[k];
}

/* Springs and motors implicitly; motors are eliminated, which adds to M's diagonal. */
static void elastic_step(Arms *a, double h) {
  V *q = a->y, *qd = a->y + N, *mq = a->y + 2 * N, *mqd = a->y + 3 * N;
  V level[R], f0[R], f[R], t[N], added[N], qdd[N], stiff[N], motor[N], share[N];
  V push[N], qd1[N], mqd1[N];
  guess_dry(a, mqd, level, f0);
  for (int i = 0; i < N; i++) {
    const V stretch = h * a->spring[i] * (mq[i] - q[i]);
    stiff[i] = h * (a->spring[N + i] + h * a->spring[i]);
    motor[i] = INERTIA(a, i) + h * VISCOUS(a, i) + stiff[i];
    share[i] = stiff[i] / motor[i];
    push[i] = INERTIA(a, i) * mqd[i] + h * (a->tau[i] - OFFSET(a, i)) - stretch;
    added[i] = stiff[i] - share[i] * stiff[i];
    t[i] = (stretch + share[i] * (push[i] - h * f0[i]) - added[i] * qd[i]) / h;
    f[i] = f0[i];
  }
  accelerate(a, q, qd, t, added, qdd);
  for (int i = 0; i < N; i++) {
    qd1[i] = qd[i] + h * qdd[i];
    mqd1[i] = (push[i] - h * f[i] + stiff[i] * qd1[i]) / motor[i];
  }
  if (is_wrong(level, mqd, mqd1)) {
    V W[N * N], A[N * N];
    mobility(a, q, added, W);
    for (int k = 0; k < N; k++)
      for (int l = 0; l < N; l++) {
        A[k * N + l] = share[k] * W[k * N + l] * share[l];
        if (k == l) A[k * N + l] += 1.0 / motor[k];
      }
    solve_dry(N, h, A, level, f, mqd1);
    for (int i = 0; i < N; i++)
      for (int k = 0; k < N; k++)
        qd1[i] -= h * W[i * N + k] * share[k] * (f[k] - f0[k]);
    for (int i = 0; i < N; i++)
      mqd1[i] = pick(LESS(magnitude(f[i]), level[i] * (1.0 - 1e-9)), ZERO, mqd1[i]);
  }
  for (int i = 0; i < N; i++) {
    q[i] += h * qd1[i]; qd[i] = qd1[i]; mq[i] += h * mqd1[i]; mqd[i] = mqd1[i];
    a->f[i] = f[i];
  }
}

/* ---- Runge-Kutta -------------------------------------------------------------- */

static void rate(Arms *a, const V *y, double smoothing, V *dy) {
  V u[R], dry[R];
  if (ELASTIC) for (int i = 0; i < N; i++) u[i] = y[3 * N + i];
  else drive_speeds(y + N, u);
  for (int k = 0; k < R; k++)
    dry[k] = dry_level(a, k, u[k]) * u[k] / root(u[k] * u[k] + smoothing * smoothing);
  for (int i = 0; i < N; i++) dy[i] = y[N + i];
  if (ELASTIC) for (int i = 0; i < N; i++) dy[2 * N + i] = y[3 * N + i];
  accelerations(a, y, dry, dy + N, dy + MOTION - N);
}

static void rk4_step(Arms *a, double h, double smoothing) {
  V k1[MOTION], k2[MOTION], k3[MOTION], k4[MOTION], z[MOTION], *y = a->y;
  rate(a, y, smoothing, k1);
  for (int i = 0; i < MOTION; i++) z[i] = y[i] + 0.5 * h * k1[i];
  rate(a, z, smoothing, k2);
  for (int i = 0; i < MOTION; i++) z[i] = y[i] + 0.5 * h * k2[i];
  rate(a, z, smoothing, k3);
  for (int i = 0; i < MOTION; i++) z[i] = y[i] + h * k3[i];
  rate(a, z, smoothing, k4);
  for (int i = 0; i < MOTION; i++)
    y[i] += h / 6.0 * (k1[i] + 2.0 * (k2[i] + k3[i]) + k4[i]);
}

static const double DP_A[6][6] = {
  {1.0 / 5},
  {3.0 / 40, 9.0 / 40},
  {44.0 / 45, -56.0 / 15, 32.0 / 9},
  {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
  {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656},
  {35.0 / 384, 0.0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84}};
static const double DP_E[7] = {71.0 / 57600, 0.0, -71.0 / 16695, 71.0 / 1920,
                               -17253.0 / 339200, 22.0 / 525, -1.0 / 40};

/* One trial step; returns its error in units of what is allowed, over all arms. */
static double dp_try(Arms *a, double h, double smoothing, double rtol, double atol,
                     V (*k)[MOTION], V *z) {
  for (int stage = 1; stage < 7; stage++) {
    for (int i = 0; i < MOTION; i++) {
      V sum = ZERO;
      for (int s = 0; s < stage; s++) sum += DP_A[stage - 1][s] * k[s][i];
      z[i] = a->y[i] + h * sum;
    }
    rate(a, z, smoothing, k[stage]);
  }
  double worst = 0.0;
  for (int i = 0; i < MOTION; i++) {
    V error = ZERO;
    for (int s = 0; s < 7; s++) error += DP_E[s] * k[s][i];
    const double e = largest(magnitude(h * error) / (atol + rtol * magnitude(z[i])));
    if (e > worst) worst = e;
  }
  return worst;
}

/* Carries the arms over a span with steps that keep the error allowed. */
static void dp_span(Arms *a, double span, double *trial, double smoothing, double rtol,
                    double atol) {
  V k[7][MOTION], z[MOTION];
  double done = 0.0, h = *trial > 0.0 && *trial < span ? *trial : span;
  rate(a, a->y, smoothing, k[0]);
  for (long tries = 0; done < span && tries < 1000000; tries++) {
    const double left = span - done;
    const int is_last = h >= left * (1.0 - 1e-12);
    const double now = is_last ? left : h;
    const double error = dp_try(a, now, smoothing, rtol, atol, k, z);
    double factor = error > 0.0 ? 0.9 * pow(error, -0.2) : 5.0;
    factor = factor > 5.0 ? 5.0 : factor < 0.2 ? 0.2 : factor;
    if (error <= 1.0 || now < 1e-9 * span) {
      for (int i = 0; i < MOTION; i++) { a->y[i] = z[i]; k[0][i] = k[6][i]; }
      done = is_last ? span : done + now;
      if (!is_last || factor < 1.0) *trial = now * factor;
      h = now * factor;
    } else {
      *trial = h = now * factor;
    }
  }
}

/* ---- in and out --------------------------------------------------------------- */

static inline void gather(const double *from, long width, long lane, V *to) {
  for (long j = 0; j < width; j++) ((double *)to)[j * LANES + lane] = from[j];
}
static inline void scatter(const V *from, long width, long lane, double *to) {
  for (long j = 0; j < width; j++) to[j] = ((const double *)from)[j * LANES + lane];
}

/* p: q, qd, motor q, motor qd, tau, f, qdd, link torque, drives, springs, bodies, trial
   step; bad: arms that ran away; s: step, speed bound, smoothing, rtol, atol.
   Returns how many arms have run away. */
long advance(long count, long ticks, long method, double *const *p, unsigned char *bad,
             const double *s) {
  long lost = 0;
  for (long first = 0; first < count; first += LANES) {
    Arms a;
    const long here = count - first < LANES ? count - first : LANES;
    for (long lane = 0; lane < LANES; lane++) {
      const long b = first + (lane < here ? lane : 0);
      gather(p[0] + b * N, N, lane, a.y);
      gather(p[1] + b * N, N, lane, a.y + N);
      if (ELASTIC) {
        gather(p[2] + b * N, N, lane, a.y + 2 * N);
        gather(p[3] + b * N, N, lane, a.y + 3 * N);
        gather(p[9] + b * 2 * N, 2 * N, lane, a.spring);
      }
      gather(p[4] + b * N, N, lane, a.tau);
      gather(p[5] + b * R, R, lane, a.f);
      gather(p[8] + b * T * R, T * R, lane, a.drive);
      gather(p[10] + b * (G + C), G + C, lane, a.body);
    }
    if (method == 0)
      for (long k = 0; k < ticks; k++) {
        if (ELASTIC) elastic_step(&a, s[0]); else rigid_step(&a, s[0]);
      }
    else if (method == 1)
      for (long k = 0; k < ticks; k++) rk4_step(&a, s[0], s[2]);
    else
      dp_span(&a, (double)ticks * s[0], p[11] + first, s[2], s[3], s[4]);
    observe(&a);
    for (long lane = 0; lane < here; lane++) {
      const long b = first + lane;
      const double *const y = (const double *)a.y;
      for (long i = 0; i < N && !bad[b]; i++) {
        const double speed = y[(N + i) * LANES + lane];
        const double place = y[i * LANES + lane];
        bad[b] = !(fabs(speed) <= s[1]) || !(fabs(place) <= 1e9);
      }
      lost += bad[b];
      if (bad[b]) continue;
      scatter(a.y, N, lane, p[0] + b * N);
      scatter(a.y + N, N, lane, p[1] + b * N);
      if (ELASTIC) {
        scatter(a.y + 2 * N, N, lane, p[2] + b * N);
        scatter(a.y + 3 * N, N, lane, p[3] + b * N);
      }
      scatter(a.f, R, lane, p[5] + b * R);
      scatter(a.qdd, N, lane, p[6] + b * N);
      scatter(a.link, N, lane, p[7] + b * N);
    }
  }
  return lost;
}
"""
