// Performance anchor: one linearly implicit step of the tendon-driven stack of X-joints with elastic tendons, written
// directly from the equations in scalar double precision. It is the untuned companion of neck.cpp: same model, start,
// torques and step, but sums over the bodies, derivatives by forward-mode dual numbers and one full linear system.
//
//   g++ -std=c++17 -O3 -march=native neck_plain.cpp -o neck_plain        (no -ffast-math)
//   ./neck_plain    one line of JSON: ns per step (3 and 4 joints) and a state for the cross-check with neck.cpp
//
// Model. N joints, N+1 tendons and motors. Joint j has angle a, s = b sin(a/2), h = sqrt(L^2 - b^2 cos^2(a/2)); with
// t = (cos, sin) and n = (-sin, cos) of mid_j = Theta_{j-1} + a/2, its three bodies have their centres at
//   X = P_{j-1} + r(a) n:   crossed bars r = (h + s)/2 and (h - s)/2,   top bar r = h (this is P_j).
// Structure:  M_s = sum m J^T J + I w^T w,   c_s = sum m J^T a0 + I w^T e0,   g = sum m g0 J_y^T + springs.
//   M_s alphaddot     = f - J_l^T t_c,   f = -c_s - g - Gamma_ra,   t_c = k_c (l - B theta) + d_c (ldot - B thetadot)
//   I_theta thetaddot = Gamma_m - Gamma_rt(thetadot) + B t_c
// Step: (M - dt^2 K - dt D) d = dt F + dt^2 K v for d = change of (thetadot, alphadot), dry friction frozen in K and D;
// then velocities, then positions with the new velocities.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

// ----------------------------------------------------------------------------------- forward-mode dual numbers
template <int D> struct Dual {
  double v;     // value
  double d[D];  // derivatives in D directions
  Dual(double value = 0) : v(value) { for (int i = 0; i < D; i++) d[i] = 0; }
};

// the number with value v and derivative da * (derivative of a)
template <int D> inline Dual<D> chain(double v, double da, const Dual<D>& a) {
  Dual<D> r;
  r.v = v;
  for (int i = 0; i < D; i++) r.d[i] = da * a.d[i];
  return r;
}
// the same for two arguments
template <int D> inline Dual<D> chain(double v, double da, const Dual<D>& a, double db, const Dual<D>& b) {
  Dual<D> r;
  r.v = v;
  for (int i = 0; i < D; i++) r.d[i] = da * a.d[i] + db * b.d[i];
  return r;
}

#define DUAL template <int D> inline Dual<D>
DUAL operator+(const Dual<D>& a, const Dual<D>& b) { return chain(a.v + b.v, 1, a, 1, b); }
DUAL operator-(const Dual<D>& a, const Dual<D>& b) { return chain(a.v - b.v, 1, a, -1, b); }
DUAL operator*(const Dual<D>& a, const Dual<D>& b) { return chain(a.v * b.v, b.v, a, a.v, b); }
DUAL operator/(const Dual<D>& a, const Dual<D>& b) {
  const double i = 1 / b.v, q = a.v * i;
  return chain(q, i, a, -q * i, b);
}
DUAL operator+(double a, const Dual<D>& b) { return chain(a + b.v, 1, b); }
DUAL operator-(double a, const Dual<D>& b) { return chain(a - b.v, -1, b); }
DUAL operator*(double a, const Dual<D>& b) { return chain(a * b.v, a, b); }
DUAL operator/(double a, const Dual<D>& b) { return chain(a / b.v, -a / (b.v * b.v), b); }
DUAL operator-(const Dual<D>& a) { return chain(-a.v, -1, a); }
DUAL sqrt(const Dual<D>& a) { const double r = std::sqrt(a.v); return chain(r, 0.5 / r, a); }
template <int D> inline void sincos(const Dual<D>& a, Dual<D>& s, Dual<D>& c) {
  const double sv = std::sin(a.v), cv = std::cos(a.v);
  s = chain(sv, cv, a), c = chain(cv, -sv, a);
}

// ------------------------------------------------------------------------------------------------------- model
struct Params {  // SI units
  double b = 0.05, L = 0.1, md = 0.064, mt = 0.032, g0 = 9.81, fv = 1e-3, l0 = 0.046, B = 8e-4, It = 5e-5, kc = 1e5,
         dc = 100, Gs = 0.008, cs = 0.5;
};

// Solve A x = r by LU without pivoting; A is overwritten, r becomes x
template <int n> static void lu_solve(double (&A)[n][n], double (&r)[n]) {
  for (int k = 0; k < n; k++) {
    const double inv = 1 / A[k][k];
    for (int i = k + 1; i < n; i++) {
      const double l = A[i][k] * inv;
      for (int j = k + 1; j < n; j++) A[i][j] -= l * A[k][j];
      r[i] -= l * r[k];
    }
  }
  for (int i = n - 1; i >= 0; i--) {
    for (int j = i + 1; j < n; j++) r[i] -= A[i][j] * r[j];
    r[i] /= A[i][i];
  }
}

template <int N> struct Neck {
  static constexpr int K = N + 1, n = K + N;  // tendons; unknowns of the step
  using X = Dual<2 * N>;                      // directions: alpha, then alphadot
  struct State { double a[N], w[N], th[K], om[K]; };  // joint angles and rates, motor angles and rates

  Params p;
  double dt, k[N], RL[K][N], RR[K][N];

  // M_s and f = -c_s - g - Gamma_ra with its derivatives by alpha and alphadot
  void structure(const State& x, double (&M)[N][N], X (&f)[N]) const {
    const double Id = p.md * p.L * p.L / 12, It = p.mt * p.b * p.b / 12;
    for (int i = 0; i < N; i++) {
      f[i] = X(0);
      for (int j = 0; j < N; j++) M[i][j] = 0;
    }
    X Theta, rate;               // angle and rate of the bar below
    X Px[N], Py[N], ax, ay;      // Jacobian and bias acceleration of its centre
    for (int j = 0; j < N; j++) {
      X a(x.a[j]), w(x.w[j]), sh, ch, sm, cm;
      a.d[j] = w.d[N + j] = 1;
      sincos(0.5 * a, sh, ch);
      sincos(Theta + 0.5 * a, sm, cm);
      const X s = p.b * sh, s1 = (0.5 * p.b) * ch, s2 = -0.25 * s;
      const X h = sqrt((p.L * p.L - p.b * p.b) + s * s), ih = 1.0 / h;
      const X h1 = s * s1 * ih, h2 = (s1 * s1 - 0.25 * (s * s) - h1 * h1) * ih;
      const X half = 0.5 * (s * ih);  // phi' = 1/2 + half, psi' = 1/2 - half
      const X phi1 = 0.5 + half, psi1 = 0.5 - half, phi2 = 0.5 * ((s1 * h - s * h1) * ih * ih);
      const X wm = rate + 0.5 * w, ww = w * w, mm = wm * wm, wwm = 2.0 * (w * wm);

      // the three bodies; the top bar is the last
      struct Body { double m, I; X r, r1, r2, w, e0; };
      const Body bodies[3] = {
          {p.md, Id, 0.5 * (h + s), 0.5 * (h1 + s1), 0.5 * (h2 + s2), phi1, phi2 * ww},
          {p.md, Id, 0.5 * (h - s), 0.5 * (h1 - s1), 0.5 * (h2 - s2), psi1, -(phi2 * ww)},
          {p.mt, It, h, h1, h2, X(1), X(0)}};
      X Jx[N], Jy[N], bx, by;
      for (const Body& o : bodies) {  // J, a0 = (bx, by), then the sums
        const X rc = o.r * cm, rs = o.r * sm;
        for (int i = 0; i < j; i++) Jx[i] = Px[i] - rc, Jy[i] = Py[i] - rs;
        Jx[j] = -(o.r1 * sm) - 0.5 * rc, Jy[j] = o.r1 * cm - 0.5 * rs;
        const X an = o.r2 * ww - o.r * mm, at = o.r1 * wwm;
        bx = ax - an * sm - at * cm, by = ay + an * cm - at * sm;
        const X fx = o.m * bx, fy = o.m * (p.g0 + by), torque = o.I * o.e0;
        for (int i = 0; i <= j; i++) {
          f[i] = f[i] - (Jx[i] * fx + Jy[i] * fy + (i < j ? torque : o.w * torque));
          const double wi = i < j ? 1 : o.w.v;
          for (int q = 0; q <= j; q++)
            M[i][q] += o.m * (Jx[i].v * Jx[q].v + Jy[i].v * Jy[q].v) + o.I * wi * (q < j ? 1 : o.w.v);
        }
      }
      // springs (b^2 sin a = 4 s s') and pivot friction (2 phi'^2 + 2 psi'^2 = 1 + s^2/h^2)
      f[j] = f[j] - k[j] * (4.0 * (s * s1) * (1.0 - (0.5 * p.l0) * ih)) - p.fv * ((1.0 + 4.0 * (half * half)) * w);

      // the top bar is the bar below the next joint
      for (int i = 0; i <= j; i++) Px[i] = Jx[i], Py[i] = Jy[i];
      ax = bx, ay = by;
      Theta = Theta + a, rate = rate + w;
    }
  }

  void step(State& x, const double (&Gm)[K]) const {
    double M[N][N];
    X f[N];
    structure(x, M, f);

    // tendons: length change l, Jacobian Jl, second derivatives H (diagonal per tendon), tension t
    double Jl[K][N], H[K][N], V[K][N], t[K];  // V = k_c J_l + d_c H diag(alphadot)
    for (int q = 0; q < K; q++) t[q] = -p.B * (p.kc * x.th[q] + p.dc * x.om[q]);
    const double h0 = std::sqrt(p.L * p.L - p.b * p.b);
    for (int j = 0; j < N; j++) {
      const double sh = std::sin(0.5 * x.a[j]), ch = std::cos(0.5 * x.a[j]), w = x.w[j];
      const double s = p.b * sh, s1 = 0.5 * p.b * ch, s2 = -0.25 * s, h = std::sqrt(h0 * h0 + s * s);
      const double h1 = s * s1 / h, h2 = (s1 * s1 - 0.25 * s * s - h1 * h1) / h;
      for (int q = 0; q < K; q++) {
        const double l = RL[q][j] * (h - s - h0) + RR[q][j] * (h + s - h0);
        Jl[q][j] = RL[q][j] * (h1 - s1) + RR[q][j] * (h1 + s1);
        H[q][j] = RL[q][j] * (h2 - s2) + RR[q][j] * (h2 + s2);
        V[q][j] = p.kc * Jl[q][j] + p.dc * H[q][j] * w;
        t[q] += p.kc * l + p.dc * Jl[q][j] * w;
      }
    }

    // A d = r with rows and columns (motors, joints)
    const double dt2 = dt * dt;
    double A[n][n], r[n];
    for (int q = 0; q < K; q++) {
      for (int u = 0; u < K; u++) A[q][u] = 0;
      A[q][q] = p.It + p.B * p.B * (p.kc * dt2 + p.dc * dt);
      const double friction = p.Gs * (2 / M_PI) * std::atan(p.cs * x.om[q]);
      r[q] = dt * (Gm[q] - friction + p.B * t[q]) - dt2 * p.kc * p.B * p.B * x.om[q];
      for (int j = 0; j < N; j++) {
        A[q][K + j] = -p.B * (V[q][j] * dt2 + p.dc * Jl[q][j] * dt);
        A[K + j][q] = -p.B * Jl[q][j] * (p.kc * dt2 + p.dc * dt);
        r[q] += dt2 * p.B * V[q][j] * x.w[j];
      }
    }
    for (int i = 0; i < N; i++) {
      double force = f[i].v, Kv = 0;
      for (int q = 0; q < K; q++) {
        force -= Jl[q][i] * t[q];
        Kv += p.kc * p.B * Jl[q][i] * x.om[q];
      }
      for (int j = 0; j < N; j++) {
        double Kaa = f[i].d[j], Daa = f[i].d[N + j];
        for (int q = 0; q < K; q++) {
          Kaa -= Jl[q][i] * V[q][j];
          Daa -= p.dc * Jl[q][i] * Jl[q][j];
          if (i == j) Kaa -= H[q][j] * t[q];
        }
        A[K + i][K + j] = M[i][j] - Kaa * dt2 - Daa * dt;
        Kv += Kaa * x.w[j];
      }
      r[K + i] = dt * force + dt2 * Kv;
    }
    lu_solve(A, r);
    for (int q = 0; q < K; q++) x.om[q] += r[q], x.th[q] += dt * x.om[q];
    for (int j = 0; j < N; j++) x.w[j] += r[K + j], x.a[j] += dt * x.w[j];
  }
};

// --------------------------------------------------------------------------------------------------- benchmark
static const double KS3[] = {600, 600, 200}, KS4[] = {800, 600, 200, 200};
static const double PULL3[] = {60, 15, 50, 20}, PULL4[] = {50, 15, 25, 20, 15};  // motor torque = -B times this

template <int N> struct Run {
  Neck<N> model;
  typename Neck<N>::State x;
  double Gm[N + 1];
  Run(double dt) {  // tendon 0 on the left of all joints, tendon j + 1 on the right of joint j
    model.dt = dt;
    for (int j = 0; j < N; j++) model.k[j] = (N == 3 ? KS3 : KS4)[j];
    for (int q = 0; q < N + 1; q++) {
      Gm[q] = -(N == 3 ? PULL3 : PULL4)[q] * model.p.B;
      for (int j = 0; j < N; j++) model.RL[q][j] = q == 0, model.RR[q][j] = q == j + 1;
    }
  }
  __attribute__((noinline)) void go(int steps) {  // from rest, alpha = 0, 20 N in every tendon
    x = {};
    for (double& th : x.th) th = -20 / model.p.kc / model.p.B;
    for (int k = 0; k < steps; k++) model.step(x, Gm);
  }
  double time(int steps, int repeats) {  // best time of one step, ns
    double best = 1e30;
    for (int r = 0; r < repeats; r++) {
      auto t0 = std::chrono::steady_clock::now();
      go(steps);
      best = std::min(best, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - t0).count());
    }
    return best / steps;
  }
};

int main() {
  const double dt = 2e-3;
  Run<3> n3(dt);
  Run<4> n4(dt);
  double t3 = n3.time(2000, 500), t4 = n4.time(2000, 500);
  n3.go(100);
  printf("{\"ns_per_step_3\": %.2f, \"ns_per_step_4\": %.2f, \"final_3\": [", t3, t4);
  for (int i = 0; i < 14; i++)
    printf("%s%.17g", i ? ", " : "",
           i < 3 ? n3.x.a[i] : i < 6 ? n3.x.w[i - 3] : i < 10 ? n3.x.th[i - 6] : n3.x.om[i - 10]);
  puts("]}");
}
