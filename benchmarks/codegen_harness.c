/* Time generated code, CasADi's code and MuJoCo in one process. Loaded by codegen.py.

   Every loop goes over the same states and adds one result to a sum, so that no call can
   be left out. */
#include <mujoco/mujoco.h>
#include <string.h>
#include <time.h>

#include "panda.h"

typedef long long int casadi_int;
int casadi_inverse(const double **arg, double **res, casadi_int *iw, double *w, int mem);
int casadi_forward(const double **arg, double **res, casadi_int *iw, double *w, int mem);

#define DOF 7

static double seconds(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double time_ours(const double *x, long n, double *sum)
{
  const double begun = seconds();
  for (long i = 0; i < n; i++, x += 3 * DOF) {
    double tau[DOF];
    panda_inverse_dynamics(x, x + DOF, x + 2 * DOF, tau);
    *sum += tau[1];
  }
  return (seconds() - begun) / (double)n;
}

double time_ours_forward(const double *x, long n, double *sum)
{
  const double begun = seconds();
  for (long i = 0; i < n; i++, x += 3 * DOF) {
    double qdd[DOF];
    panda_forward_dynamics(x, x + DOF, x + 2 * DOF, qdd);
    *sum += qdd[1];
  }
  return (seconds() - begun) / (double)n;
}

double time_casadi(const double *x, long n, double *sum)
{
  double tau[DOF], w[1];
  casadi_int iw[1];
  double *res[1] = {tau};
  const double begun = seconds();
  for (long i = 0; i < n; i++, x += 3 * DOF) {
    const double *arg[3] = {x, x + DOF, x + 2 * DOF};
    casadi_inverse(arg, res, iw, w, 0);
    *sum += tau[1];
  }
  return (seconds() - begun) / (double)n;
}

double time_mujoco(const mjModel *m, mjData *d, const double *x, long n, double *sum)
{
  const double begun = seconds();
  for (long i = 0; i < n; i++, x += 3 * DOF) {
    memcpy(d->qpos, x, DOF * sizeof(double));
    memcpy(d->qvel, x + DOF, DOF * sizeof(double));
    memcpy(d->qacc, x + 2 * DOF, DOF * sizeof(double));
    mj_inverse(m, d);
    *sum += d->qfrc_inverse[1];
  }
  return (seconds() - begun) / (double)n;
}

/* Smooth dynamics only: position and velocity stages, forces, acceleration. */
double time_mujoco_forward(const mjModel *m, mjData *d, const double *x, long n, double *sum)
{
  const double begun = seconds();
  for (long i = 0; i < n; i++, x += 3 * DOF) {
    memcpy(d->qpos, x, DOF * sizeof(double));
    memcpy(d->qvel, x + DOF, DOF * sizeof(double));
    memcpy(d->qfrc_applied, x + 2 * DOF, DOF * sizeof(double));
    mj_fwdPosition(m, d);
    mj_fwdVelocity(m, d);
    mj_fwdActuation(m, d);
    mj_fwdAcceleration(m, d);
    *sum += d->qacc_smooth[1];
  }
  return (seconds() - begun) / (double)n;
}
