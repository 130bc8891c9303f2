"""C text: rates traced whole, rates solved by loops, and the steps around either."""

TRACED = """
#define NX {states}
#define NS {signals}
#define NR {rates}
#define NH {health}
static const int place[] = {{{places}}};

static int rates(const double *x, const double *s, double *dx)
{{
  double in[NX + NS + 1], y[NR + NH + 1], u[1];
  memcpy(in, x, NX * sizeof(double));
  memcpy(in + NX, s, NS * sizeof(double));
  core_{name}(in, u, y);
  memset(dx, 0, NX * sizeof(double));
  for (int k = 0; k < NR; k++) dx[place[k]] = y[k];
  for (int k = 0; k < NH; k++) if (!(y[NR + k] <= 1.0)) return 1;
  return 0;
}}
"""

LOOPED = """
#define NX {states}
#define NS {signals}
#define NV {velocities_count}
#define M {rows}
#define STORED {stored}
#define TOTAL {total}
static const int place[] = {{{places}}};
static const int alive[] = {{{alive}}};
#define PARTS {parts}
static const int touched[M][PARTS][2] = {{{touched}}};
typedef struct {{
  int start, stop, ideal, stabilising, carrier;
  double max_force, max_deviation;
}} Held;
static const Held held[] = {{{held}}};

static double dot(const double *a, const double *b, int n)
{{
  double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
  int k = 0;
  for (; k + 4 <= n; k += 4) {{
    s0 += a[k] * b[k];
    s1 += a[k + 1] * b[k + 1];
    s2 += a[k + 2] * b[k + 2];
    s3 += a[k + 3] * b[k + 3];
  }}
  for (; k < n; k++) s0 += a[k] * b[k];
  return (s0 + s1) + (s2 + s3);
}}

/* A + rho = L D L'; rows of A that are zero are left out by an inverse pivot of 0. */
static void factor(const double *A, double *L, double *inverse)
{{
  double mean = 0.0, work[M];
  int used = 0;
  for (int i = 0; i < M; i++)
    if (A[i * M + i] != 0.0) {{ mean += A[i * M + i]; used++; }}
  const double rho = mean * {regularisation} / (used ? used : 1);
  for (int i = 0; i < M; i++) {{
    for (int j = 0; j < i; j++) {{
      work[j] = A[i * M + j] - dot(work, L + j * M, j);
      L[i * M + j] = work[j] * inverse[j];
    }}
    const double pivot = A[i * M + i] + rho - dot(work, L + i * M, i);
    inverse[i] = A[i * M + i] != 0.0 ? 1.0 / pivot : 0.0;
  }}
}}

static void substitute(const double *L, const double *inverse, double *v)
{{
  for (int i = 0; i < M; i++) v[i] -= dot(L + i * M, v, i);
  for (int i = 0; i < M; i++) v[i] *= inverse[i];
  for (int i = M - 1; i > 0; i--)
    for (int j = 0; j < i; j++) v[j] -= L[i * M + j] * v[i];
}}

static void solve(const double *A, const double *L, const double *inverse,
                  const double *right, double *force)
{{
  double rest[M];
  for (int i = 0; i < M; i++) force[i] = -right[i];
  substitute(L, inverse, force);
  for (int again = 0; again < {refinements}; again++) {{
    for (int i = 0; i < M; i++) rest[i] = -right[i] - dot(A + i * M, force, M);
    substitute(L, inverse, rest);
    for (int i = 0; i < M; i++) force[i] += rest[i];
  }}
}}

/* A = J U over the velocities that each row touches: a few runs of them. */
static void multiply(const double *J, const double *U, double *A)
{{
  memset(A, 0, M * M * sizeof(double));
  for (int i = 0; i < M; i++)
    for (int part = 0; part < PARTS; part++)
      for (int k = touched[i][part][0]; k < touched[i][part][1]; k++)
        for (int j = 0; j <= i; j++) A[i * M + j] += J[i * NV + k] * U[k * M + j];
  for (int i = 0; i < M; i++)
    for (int j = 0; j < i; j++) A[j * M + i] = A[i * M + j];
}}

static int rates(const double *x, const double *s, double *dx)
{{
  double in[NX + NS + 1], y[STORED + 1], u[1], out[TOTAL], L[M * M], inverse[M];
  double ideal[M], extra[M], force[M], weight[M], A[M * M];
  memcpy(in, x, NX * sizeof(double));
  memcpy(in + NX, s, NS * sizeof(double));
  core_{name}(in, u, y);
  memset(out, 0, sizeof out);
  for (int k = 0; k < STORED; k++) out[place[k]] = y[k];
  double *const response = out + NX, *const jacobian = response + NV * M;
  double *const free = jacobian + M * NV, *const pull = free + M;
  double *const gap = pull + M;
  const double *const error = gap + M, *const carrier = error + M;
  multiply(jacobian, response, A);
  for (int i = 0; i < M; i++) weight[i] = alive[i] < 0 ? 1.0 : s[alive[i]];
  for (int i = 0; i < M; i++) {{
    for (int j = 0; j < M; j++) A[i * M + j] *= weight[i] * weight[j];
    if (weight[i] == 0.0) A[i * M + i] = 1.0;
    free[i] *= weight[i];
    pull[i] *= weight[i];
    gap[i] *= weight[i];
  }}
  factor(A, L, inverse);
  solve(A, L, inverse, free, ideal);
  solve(A, L, inverse, pull, extra);
  double rest = 0.0, scale = 1.0;
  for (int i = 0; i < M; i++) force[i] = ideal[i] + extra[i];
  for (int i = 0; i < M; i++) {{
    const double right = free[i] + pull[i], r = right + dot(A + i * M, force, M);
    rest += r * r;
    scale += right * right;
  }}
  memcpy(dx, out, NX * sizeof(double));
  for (int k = 0; k < NV; k++)
    dx[{velocities} - NV + k] += dot(response + k * M, force, M);
  int bad = !(rest <= scale * {tolerance});
  for (int k = 0; k < {held_count}; k++) {{
    const Held *h = held + k;
    const int n = h->stop - h->start;
    const double *f = force + h->start, *g = gap + h->start;
    dx[h->ideal] = dot(ideal + h->start, error + h->start, n);
    dx[h->stabilising] = dot(extra + h->start, error + h->start, n);
    if (h->carrier >= 0) dx[h->carrier] = dot(f, carrier + h->start, n);
    bad |= !(dot(f, f, n) <= h->max_force * h->max_force);
    bad |= !(dot(g, g, n) <= h->max_deviation * h->max_deviation);
  }}
  return bad;
}}
"""

STEPS = """
static const int quaternion[] = {{{quaternions}}};

static int settle(double *x)
{{
  double sum = 0.0;
  for (int k = 0; k < {quaternion_count}; k++) {{
    double *q = x + quaternion[k];
    const double r = 1.0 / sqrt(q[0]*q[0] + q[1]*q[1] + q[2]*q[2] + q[3]*q[3]);
    for (int j = 0; j < 4; j++) q[j] *= r;
  }}
  for (int j = 0; j < NX; j++) sum += x[j] * 0.0;
  return sum != 0.0;
}}

long rates_{name}(const double *x, const double *s, double *dx)
{{
  return rates(x, s, dx);
}}

/* One explicit Runge-Kutta step after another; row i*rows + k of `signal` holds the
   signals of stage k of step i, `stride` doubles apart. Returns the steps taken. */
long advance_{name}(long steps, double h, double *x, const double *signal, long stride,
                    long stages, const double *a, const double *b,
                    double *record, long every, long phase)
{{
  double k[8][NX], y[NX], dx[NX];
  for (long i = 0; i < steps; i++) {{
    for (long s = 0; s < stages; s++) {{
      for (int j = 0; j < NX; j++) {{
        double sum = 0.0;
        for (long m = 0; m < s; m++) sum += a[s * stages + m] * k[m][j];
        y[j] = x[j] + h * sum;
      }}
      if (rates(y, signal + (i * stages + s) * stride, k[s])) return i;
    }}
    for (int j = 0; j < NX; j++) {{
      double sum = 0.0;
      for (long m = 0; m < stages; m++) sum += b[m] * k[m][j];
      dx[j] = x[j] + h * sum;
    }}
    if (settle(dx)) return i;
    memcpy(x, dx, NX * sizeof(double));
    if ((phase + i + 1) % every == 0) {{
      memcpy(record, x, NX * sizeof(double));
      record += NX;
    }}
  }}
  return steps;
}}

/* One explicit step from x to y, and its error by the weights e. */
long attempt_{name}(double h, const double *x, const double *signal, long stride,
                    long stages, const double *a, const double *b, const double *e,
                    double *y, double *error)
{{
  double k[8][NX];
  for (long s = 0; s < stages; s++) {{
    for (int j = 0; j < NX; j++) {{
      double sum = 0.0;
      for (long m = 0; m < s; m++) sum += a[s * stages + m] * k[m][j];
      y[j] = x[j] + h * sum;
    }}
    if (rates(y, signal + s * stride, k[s])) return 1;
  }}
  for (int j = 0; j < NX; j++) {{
    double sum = 0.0, rest = 0.0;
    for (long m = 0; m < stages; m++) {{
      sum += b[m] * k[m][j];
      rest += e[m] * k[m][j];
    }}
    y[j] = x[j] + h * sum;
    error[j] = h * rest;
  }}
  return 0;
}}

/* Semi-implicit Euler: velocities NP..NV first, then positions with the new ones. */
long advance_softly_{name}(long steps, double h, double *x, const double *signal,
                           long stride, double *record, long every, long phase)
{{
  double first[NX], second[NX], y[NX];
  for (long i = 0; i < steps; i++) {{
    const double *s = signal + i * stride;
    if (rates(x, s, first)) return i;
    memcpy(y, x, NX * sizeof(double));
    for (int j = {positions}; j < {velocities}; j++) y[j] += h * first[j];
    if (rates(y, s, second)) return i;
    for (int j = 0; j < {positions}; j++) y[j] += h * second[j];
    for (int j = {velocities}; j < NX; j++) y[j] += 0.5 * h * (first[j] + second[j]);
    if (settle(y)) return i;
    memcpy(x, y, NX * sizeof(double));
    if ((phase + i + 1) % every == 0) {{
      memcpy(record, x, NX * sizeof(double));
      record += NX;
    }}
  }}
  return steps;
}}
"""
