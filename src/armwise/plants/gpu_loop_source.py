"""CUDA C of a closed loop: one arm, its controller and its sensors a thread.

Noise comes from Philox 4×32-10 (Salmon et al., "Parallel random numbers: as easy as 1,
2, 3", SC 2011): every number follows from the seed and from where and when it is used.
"""

from __future__ import annotations

from armwise.dynamics import Mechanism
from armwise.plants.c_engine import cuda_stepper_source

THREADS = 64
"""Arms of a block: each needs most of a thread's registers."""

_NOISE = """\
typedef unsigned int Word;
typedef struct { Word word[4]; } Four;

static __forceinline__ Four philox(Four counter, Word key0, Word key1) {
  for (int round = 0; round < 10; round++) {
    const Word a = __umulhi(0xD2511F53u, counter.word[0]);
    const Word b = 0xD2511F53u * counter.word[0];
    const Word c = __umulhi(0xCD9E8D57u, counter.word[2]);
    const Word d = 0xCD9E8D57u * counter.word[2];
    counter = Four{{c ^ counter.word[1] ^ key0, d, a ^ counter.word[3] ^ key1, b}};
    key0 += 0x9E3779B9u; key1 += 0xBB67AE85u;
  }
  return counter;
}

/* Uniform on (0, 1), of 53 bits. */
static __forceinline__ double uniform(Word high, Word low) {
  const unsigned long long bits = ((unsigned long long)high << 32 | low) >> 11;
  return ((double)bits + 0.5) / 9007199254740992.0;
}

/* N standard normals for one arm at one step. */
static __forceinline__ void normals(Word arm, Word step, Word seed, double *z) {
  for (int j = 0; j < N; j += 2) {
    const Four x = philox(Four{{arm, step, (Word)j, 1u}}, seed, 0u);
    const double size = sqrt(-2.0 * log(uniform(x.word[0], x.word[1])));
    double s, c;
    sincospi(2.0 * uniform(x.word[2], x.word[3]), &s, &c);
    z[j] = size * c;
    if (j + 1 < N) z[j + 1] = size * s;
  }
}
"""

_LOOP = """\
/* settings: tick, control period, what the velocity filter keeps;
   joints: kp, kd, resolution of the encoder, its zero's spread in counts, torque noise;
   reference: q, qd and torque of every step; out: (q, tau) x (steps + 1) x runs. */
extern "C" __global__ void __launch_bounds__(THREADS) follow(long long runs,
    long long steps, long long ticks, long long first, long long seed,
    const double *__restrict__ settings, const double *__restrict__ joints,
    const double *__restrict__ numbers, const double *__restrict__ start,
    const double *__restrict__ reference, double *__restrict__ out)
{
  const long long me = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (me >= runs) return;
  const double *kp = joints, *kd = joints + N, *count = joints + 2 * N;
  const double *loose = joints + 3 * N, *noise = joints + 4 * N;
  const double period = settings[1], keep = settings[2];
  const Word arm = (Word)(first + me);
  Arms a;
  double zero[N], last[N], speed[N], z[N];
  for (int i = 0; i < T * R; i++) a.drive[i] = numbers[i];
  for (int i = 0; i < G + C; i++) a.body[i] = numbers[T * R + i];
  for (int k = 0; k < R; k++) a.f[k] = 0.0;
  for (int i = 0; i < N; i++) {
    const Four x = philox(Four{{arm, (Word)i, 0u, 0u}}, (Word)seed, 0u);
    a.y[i] = start[i]; a.y[N + i] = start[N + i]; a.tau[i] = 0.0;
    zero[i] = loose[i] * count[i] * (uniform(x.word[0], x.word[1]) - 0.5);
    speed[i] = start[N + i]; last[i] = 0.0;
  }
  for (long long step = 0; ; step++) {
    normals(arm, (Word)step, (Word)seed, z);
    double seen[N];
    for (int i = 0; i < N; i++) {
      const double q = a.y[i] + zero[i];
      seen[i] = count[i] > 0.0 ? rint(q / count[i]) * count[i] : q;
      out[(i * (steps + 1) + step) * runs + me] = seen[i];
      out[((N + i) * (steps + 1) + step) * runs + me] = a.tau[i] + noise[i] * z[i];
    }
    if (step == steps) break;
    const double *r = reference + step * 3 * N;
    for (int i = 0; i < N; i++) {
      if (step > 0)
        speed[i] = keep * speed[i] + (1.0 - keep) * ((seen[i] - last[i]) / period);
      last[i] = seen[i];
      const double spring = kp[i] * (r[i] - seen[i]);
      a.tau[i] = r[2 * N + i] + (spring + kd[i] * (r[N + i] - speed[i]));
    }
    for (long long k = 0; k < ticks; k++) rigid_step(&a, settings[0]);
  }
}
"""


def loop_source(mechanism: Mechanism) -> str:
    """Return CUDA C of `follow`, for the arms of one mechanism."""
    threads = f"#define THREADS {THREADS}"
    return "\n".join([cuda_stepper_source(mechanism), threads, _NOISE, _LOOP])
