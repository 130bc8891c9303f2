// Time Pinocchio's rnea and aba in C++. Loaded by codegen.py.
#include <chrono>
#include <string>

#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <pinocchio/multibody.hpp>

using Clock = std::chrono::steady_clock;
using RowMajor3 = Eigen::Matrix<double, 3, 3, Eigen::RowMajor>;

// Seven revolute joints about z: of each the pose (rotation by rows, position), the mass,
// the centre of mass and the inertia about it by rows.
static pinocchio::Model chain(const double *numbers)
{
  pinocchio::Model model;
  for (int i = 0; i < 7; i++, numbers += 25) {
    const Eigen::Map<const RowMajor3> R(numbers), I(numbers + 16);
    const Eigen::Map<const Eigen::Vector3d> p(numbers + 9), c(numbers + 13);
    const pinocchio::SE3 pose{Eigen::Matrix3d{R}, Eigen::Vector3d{p}};
    const auto id = model.addJoint(static_cast<pinocchio::JointIndex>(i),
                                   pinocchio::JointModelRZ(), pose, "j" + std::to_string(i));
    const pinocchio::Inertia body{numbers[12], Eigen::Vector3d{c}, Eigen::Matrix3d{I}};
    model.appendBodyToJoint(id, body);
  }
  return model;
}

extern "C" void time_pinocchio(const double *numbers, const double *x, long n, double *times,
                               double *sums)
{
  const pinocchio::Model model = chain(numbers);
  pinocchio::Data data(model);
  for (int which = 0; which < 2; which++) {
    sums[which] = 0;
    const auto begun = Clock::now();
    const double *row = x;
    for (long i = 0; i < n; i++, row += 21) {
      const Eigen::Map<const Eigen::VectorXd> q(row, 7), v(row + 7, 7), a(row + 14, 7);
      if (which)
        sums[which] += pinocchio::aba(model, data, q, v, a)[1];
      else
        sums[which] += pinocchio::rnea(model, data, q, v, a)[1];
    }
    times[which] = std::chrono::duration<double>(Clock::now() - begun).count() / (double)n;
  }
}
