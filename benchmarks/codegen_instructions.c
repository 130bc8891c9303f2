/* Call one function many times, for callgrind to count. */
#include "panda.h"

#define DOF 7

typedef long long int casadi_int;
int casadi_inverse(const double **arg, double **res, casadi_int *iw, double *w, int mem);

static double x[3 * DOF] = {0.1, -0.4, 0.3, -1.2, 0.5, 0.8, -0.2, 0.4, 0.3, -0.6, 0.2,
                            0.9, -0.7, 0.1, 1.0, 0.5, -0.3, 0.8, 0.2, -0.9, 0.6};

__attribute__((noinline)) void call_ours(double *out)
{
  panda_inverse_dynamics(x, x + DOF, x + 2 * DOF, out);
}

__attribute__((noinline)) void call_ours_forward(double *out)
{
  panda_forward_dynamics(x, x + DOF, x + 2 * DOF, out);
}

__attribute__((noinline)) void call_casadi(double *out)
{
  double w[1];
  casadi_int iw[1];
  const double *arg[3] = {x, x + DOF, x + 2 * DOF};
  double *res[1] = {out};
  casadi_inverse(arg, res, iw, w, 0);
}

int main(void)
{
  double out[DOF], sum = 0;
  for (int i = 0; i < 100; i++) {
    x[0] += 1e-3;
    call_ours(out);
    sum += out[0];
    call_ours_forward(out);
    sum += out[0];
    call_casadi(out);
    sum += out[0];
  }
  return sum > 1e300;
}
