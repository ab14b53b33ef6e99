// Performance anchor: one linearly implicit step of the tendon-driven stack of X-joints with elastic
// tendons, written by hand for speed in double precision. It is the yardstick for the library.
//
//   g++ -std=c++17 -O3 -march=native neck.cpp -o neck -lmvec -lm        (no -ffast-math)
//       needs AVX2 or AVX-512, g++ >= 12 and glibc >= 2.35 (vector sin, cos, atan)
//   ./neck    one line of JSON: ns per step (3 and 4 joints, batch) and a state for the cross-check
//
// Model. N joints, N+1 tendons and motors, routing matrices RL, RR as data. Joint j has angle a, s = b sin(a/2),
// h = sqrt(L^2 - b^2 + s^2); its link vector is e = h n(mid), n = (-sin, cos), mid = angle of the bar below + a/2.
//
// Reduction used here. The two crossed bars have their centres at P + e/2 +- (s/2) n, so both together are
//   * a mass m_d at each end of the link   (with the top bars: point masses at the ends of the links),
//   * minus m_d/2 |edot|^2/2, which with the +-(s/2) n part and the rotation of the bars leaves
//     1/2 (A0 + A1/h^2) alphadot^2 + 1/2 Bm middot^2,  with constant A0, A1, Bm   (because h^2 - s^2 is constant).
// What remains is a chain of point masses at P_p = e_1 + ... + e_p: the constant part of M_s is stored, gravity is an
// acceleration of the base, and every derivative is a closed formula in h, h', h'', h'''.
//
// Step: (M_s - dt^2 K - dt D) d = dt f + dt^2 K v; velocities, then positions with the new velocities; dry friction
// frozen. K and D are never formed: their columns are added to the columns of M_s before the sum over the masses.
// The motor block is a multiple of the identity, so its Schur complement only scales the tendon part of the matrix
// by I_theta/(I_theta + B^2 (k_c dt^2 + d_c dt)); an N x N system is solved by LU without pivoting.
//
// Lanes. One trajectory: the vector lanes are the joints (or the tendons). Batch: the lanes are trajectories and the
// same code runs on arrays of vectors.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <immintrin.h>
#pragma GCC diagnostic ignored "-Wpsabi"  // v8 is passed only between functions of this file

// ---------------------------------------------------------------------------------------------- vectors of doubles
typedef double v4 __attribute__((vector_size(32)));
typedef double v8 __attribute__((vector_size(64)));
typedef long long i4 __attribute__((vector_size(32)));

extern "C" {  // libmvec
__m256d _ZGVdN4v_sin(__m256d); __m256d _ZGVdN4v_cos(__m256d); __m256d _ZGVdN4v_atan(__m256d);
#ifdef __AVX512F__
__m512d _ZGVeN8v_sin(__m512d); __m512d _ZGVeN8v_cos(__m512d); __m512d _ZGVeN8v_atan(__m512d);
#endif
}

static inline v4 vsin(v4 x) { return (v4)_ZGVdN4v_sin((__m256d)x); }
static inline v4 vcos(v4 x) { return (v4)_ZGVdN4v_cos((__m256d)x); }
static inline v4 vatan(v4 x) { return (v4)_ZGVdN4v_atan((__m256d)x); }
static inline v4 vsqrt(v4 x) { return (v4)_mm256_sqrt_pd((__m256d)x); }
#ifdef __AVX512F__
static inline v8 vsin(v8 x) { return (v8)_ZGVeN8v_sin((__m512d)x); }
static inline v8 vcos(v8 x) { return (v8)_ZGVeN8v_cos((__m512d)x); }
static inline v8 vatan(v8 x) { return (v8)_ZGVeN8v_atan((__m512d)x); }
static inline v8 vsqrt(v8 x) { return (v8)_mm512_sqrt_pd((__m512d)x); }
#else  // two halves
#define HALVES(f)                                                                                             \
  static inline v8 f(const v8& x) {                                                                           \
    v4 a = f(__builtin_shufflevector(x, x, 0, 1, 2, 3)), b = f(__builtin_shufflevector(x, x, 4, 5, 6, 7));    \
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);                                             \
  }
HALVES(vsin) HALVES(vcos) HALVES(vatan) HALVES(vsqrt)
#endif

// Row<T, n>: n numbers of type T with elementwise arithmetic. T = double: one vector register (padded to 4 or 8
// lanes). T = vector: a plain array.
template <class T, int n> struct Arr {
  T v[n];
  T& operator[](int i) { return v[i]; }
  const T& operator[](int i) const { return v[i]; }
};
#define ARR template <class T, int n> inline Arr<T, n>
#define EACH(expr) { Arr<T, n> r; for (int i = 0; i < n; i++) r.v[i] = expr; return r; }
#define OPERATOR(op)                                                                    \
  ARR operator op(const Arr<T, n>& a, const Arr<T, n>& b) EACH(a.v[i] op b.v[i])        \
  ARR operator op(double a, const Arr<T, n>& b) EACH(a op b.v[i])                       \
  ARR operator op(const Arr<T, n>& a, double b) EACH(a.v[i] op b)                       \
  ARR operator op(const Arr<T, n>& a, const T& b) EACH(a.v[i] op b)
OPERATOR(+) OPERATOR(-) OPERATOR(*) OPERATOR(/)
template <class T, int n, class U> inline Arr<T, n>& operator+=(Arr<T, n>& a, const U& b) { return a = a + b; }
ARR operator-(const Arr<T, n>& a) EACH(-a.v[i])
ARR vsin(const Arr<T, n>& a) EACH(vsin(a.v[i]))
ARR vcos(const Arr<T, n>& a) EACH(vcos(a.v[i]))
ARR vatan(const Arr<T, n>& a) EACH(vatan(a.v[i]))
ARR vsqrt(const Arr<T, n>& a) EACH(vsqrt(a.v[i]))

template <class T, int n> struct RowType { using type = Arr<T, n>; };
template <> struct RowType<double, 3> { using type = v4; };
template <> struct RowType<double, 4> { using type = v4; };
template <> struct RowType<double, 5> { using type = v8; };
template <class T, int n> using Row = typename RowType<T, n>::type;

// (lane < p) ? a : b and (lane == p) ? a : b; p is a constant once the loops are unrolled
static inline v4 below(int p, v4 a, v4 b) { return (i4{0, 1, 2, 3} < (long long)p) ? a : b; }
static inline v4 only(int p, v4 a, v4 b) { return (i4{0, 1, 2, 3} == (long long)p) ? a : b; }
ARR below(int p, const Arr<T, n>& a, const Arr<T, n>& b) EACH(i < p ? a.v[i] : b.v[i])
ARR only(int p, const Arr<T, n>& a, const Arr<T, n>& b) EACH(i == p ? a.v[i] : b.v[i])

// LU without pivoting, in place, from the last row to the first (the order in which the rows become known)
template <class T, int N> static inline void lu_solve(T (&A)[N][N], T (&x)[N]) {
  for (int k = N - 1; k >= 0; k--) {
    A[k][k] = 1.0 / A[k][k];
    for (int i = k - 1; i >= 0; i--) {
      T l = A[i][k] * A[k][k];
      for (int j = k - 1; j >= 0; j--) A[i][j] -= l * A[k][j];
      x[i] -= l * x[k];
    }
  }
  for (int i = 0; i < N; i++) {
    for (int j = 0; j < i; j++) x[i] -= A[i][j] * x[j];
    x[i] *= A[i][i];
  }
}

// ------------------------------------------------------------------------------------------------------------ model
#define INLINE inline __attribute__((always_inline))

struct Params {  // SI units
  double b = 0.05, L = 0.1, md = 0.064, mt = 0.032, g0 = 9.81, fv = 1e-3, l0 = 0.046, B = 8e-4, It = 5e-5, kc = 1e5,
         dc = 100, Gs = 0.008, cs = 0.5;
};

template <class T, int N> struct Neck {
  static constexpr int K = N + 1;  // tendons
  using J = Row<T, N>;             // one number per joint
  using M = Row<T, K>;             // one number per tendon
  struct State { J a, w; M th, om; };  // joint angles and rates, motor angles and rates

  double dt, dt2, B, kc, dc, dcs, Gf, halfb, h2s, h0, l2, fv, A1, k1, rho, back, iat, mass[N];
  J ks, grav, C[N], M0[N];             // springs; weights carried; masses carried by both i and k; constant part of M_s
  J SS[N], SD[N], DS[N], DD[N];        // Gram matrices of S, D times rho
  J Sr[K], Dr[K];                      // rows of S = RR + RL and D = RR - RL
  M Sc[N], Dc[N];                      // columns of S and D

  Neck(const Params& p, const double* k, const double* RL, const double* RR, double step) {
    dt = step; dt2 = dt * dt; B = p.B; kc = p.kc; dc = p.dc; dcs = p.cs; Gf = p.Gs * 2 / M_PI; fv = p.fv; l2 = 2 * p.l0;
    double Id = p.md * p.L * p.L / 12, Itop = p.mt * p.b * p.b / 12, gamma[N];
    halfb = p.b / 2; h2s = p.L * p.L - p.b * p.b; h0 = std::sqrt(h2s);
    A1 = h2s * (p.md * p.L * p.L / 4 - Id) / 2;
    double A0 = Id / 2 - p.md * h2s / 8, Bm = 2 * Id - p.md * h2s / 2;
    k1 = kc * dt2 + dc * dt;
    double at = p.It + B * B * k1;
    iat = 1 / at; rho = p.It / at; back = B * k1 / at;
    for (int i = N - 1; i >= 0; i--) {
      mass[i] = p.mt + p.md + (i < N - 1 ? p.md : 0.);
      gamma[i] = mass[i] + (i < N - 1 ? gamma[i + 1] : 0.);
    }
    ks = grav = J{};
    for (int i = 0; i < N; i++) {
      C[i] = M0[i] = SS[i] = SD[i] = DS[i] = DD[i] = J{}; Sc[i] = Dc[i] = M{};
      ks[i] += k[i]; grav[i] += p.g0 * gamma[i];
      for (int j = 0; j < N; j++) {
        C[i][j] += gamma[std::max(i, j)];
        for (int q = 0; q < N; q++) {
          auto mid = [q](int c) { return c < q ? 1. : c == q ? .5 : 0.; };
          M0[i][j] += Bm * mid(i) * mid(j) + (std::max(i, j) <= q ? Itop : 0.);
        }
        for (int q = 0; q < K; q++) {
          double si = RR[q * N + i] + RL[q * N + i], sj = RR[q * N + j] + RL[q * N + j];
          double di = RR[q * N + i] - RL[q * N + i], dj = RR[q * N + j] - RL[q * N + j];
          SS[i][j] += rho * si * sj; SD[i][j] += rho * si * dj; DS[i][j] += rho * di * sj; DD[i][j] += rho * di * dj;
        }
      }
      M0[i][i] += A0 + 2 * fv * dt;  // with the constant part of the pivot friction
    }
    for (int q = 0; q < K; q++) {
      Sr[q] = Dr[q] = J{};
      for (int j = 0; j < N; j++) {
        double s = RR[q * N + j] + RL[q * N + j], d = RR[q * N + j] - RL[q * N + j];
        Sr[q][j] += s; Dr[q][j] += d; Sc[j][q] += s; Dc[j][q] += d;
      }
    }
  }

  // S x + D y (joints to tendons) and their transposes
  M route(const J& x, const J& y) const {
    M r = Sc[0] * x[0] + Dc[0] * y[0];
    for (int j = 1; j < N; j++) r += Sc[j] * x[j] + Dc[j] * y[j];
    return r;
  }
  static J back_route(const J (&R)[K], const M& z) {
    J r = R[0] * z[0];
    for (int q = 1; q < K; q++) r += R[q] * z[q];
    return r;
  }
  J chain(const J& x) const {  // sum_k C_ik x_k
    J r = C[0] * x[0];
    for (int k = 1; k < N; k++) r += C[k] * x[k];
    return r;
  }
  static J sum_above(const J& x) {  // sum over the joints above
    J r{};
    for (int j = N - 2; j >= 0; j--) r[j] = r[j + 1] + x[j + 1];
    return r;
  }

  // Matrix A and right-hand side r of the reduced system; rt: right-hand side of the motors; Uh, Us: the factors of
  // the coupling, U = S diag(Uh) + D diag(Us).
  INLINE void system(const State& x, const M& Gm, T (&A)[N][N], T (&r)[N], M& rt, J& Uh, J& Us) const {
    const J w = x.w, ww = w * w;
    const J sh = vsin(0.5 * x.a), ch = vcos(0.5 * x.a);
    // h, s and their derivatives; u = 1/h, y = 1/h^2
    const J s = 2 * halfb * sh, s1 = halfb * ch, s2 = -0.25 * s, sq = s * s, hh = h2s + sq;
    const J y = 1.0 / hh, h = vsqrt(hh), u = h * y, ss = s * s1, h1 = ss * u, p = s1 * s1 - 0.25 * sq;
    const J h2 = u * (p - h1 * h1), h3 = -u * (ss + 3.0 * (h1 * h2));
    const J y1 = -2.0 * (h1 * u * y), y2 = 6.0 * (h1 * h1 * y * y) - 2.0 * (h2 * u * y);

    // tendons: tension tc; tt = tension with the position part of the linearised change; friction of the motors
    const J xh = kc * (h - h0) + dc * (h1 * w), xs = kc * s + dc * (s1 * w);
    const M tc = route(xh, xs) - (kc * B) * x.th - (dc * B) * x.om;
    const J eh = dt * (kc * (h1 * w) + dc * (h2 * ww)), es = dt * (kc * (s1 * w) + dc * (s2 * ww));
    const M tt = tc + route(eh, es) - (dt * kc * B) * x.om;
    rt = dt * (Gm - Gf * vatan(dcs * x.om) + B * tt);
    const M z = back * rt - dt * tt;
    Uh = k1 * h1 + (dc * dt2) * (h2 * w);
    Us = k1 * s1 + (dc * dt2) * (s2 * w);

    // directions: with H_j = product of the half-angle rotations, t(mid_j) = H_{j-1} H_j; m = rate of mid
    J c, sn, m;
    {
      T cr = ch[0], ci = sh[0], wl = w[0];
      c = ch; sn = sh; m = 0.5 * w;
      for (int j = 1; j < N; j++) {
        T nr = cr * ch[j] - ci * sh[j], ni = cr * sh[j] + ci * ch[j];
        c[j] = cr * nr - ci * ni; sn[j] = cr * ni + ci * nr; m[j] += wl;
        cr = nr; ci = ni; wl += w[j];
      }
    }
    // velocity-product acceleration of the link, P n + Q t, and its change over dt at fixed rates
    const J mm = m * m, P = h2 * ww - h * mm, Q = -2.0 * (h1 * w * m);
    const J Px = h3 * ww - h1 * mm, Qx = -2.0 * (h2 * w * m);
    const J Pd = P + dt * (Px * w + Q * m), Qd = Q + dt * (Qx * w - P * m);
    const J Rx = chain(Q * c - P * sn), Ry = chain(P * c + Q * sn) + grav;
    const J Vx = chain(Qd * c - Pd * sn), Vy = chain(Pd * c + Qd * sn) + grav;
    const J Rn = Ry * c - Rx * sn, Rt = Rx * c + Ry * sn, Vn = Vy * c - Vx * sn, Vt = Vx * c + Vy * sn;
    const J mu = -(h * Vt) - dt * (h1 * w * Rt + h * m * Rn);
    const J xi = h1 * Vn + dt * (h2 * w * Rn - h1 * m * Rt);

    // terms of one joint: springs, pivot friction, A1/h^2, tendon curvature
    const J loc0 = (0.5 * A1) * (y1 * ww) + ks * (4.0 * ss - l2 * h1) + fv * (2.0 - h2s * y) * w;
    const J loc1 = (0.5 * A1) * (y2 * ww) + ks * (4.0 * p - l2 * h2) - (fv * h2s) * (y1 * w) +
                   h2 * back_route(Sr, tc) + s2 * back_route(Dr, tc);
    const J rhs = h1 * back_route(Sr, z) + s1 * back_route(Dr, z) -
                  dt * (loc0 + dt * (loc1 * w) + xi + 0.5 * mu + sum_above(mu));
    const J g = -(h * Rn), q = dt2 * (0.5 * g - h1 * Rt + sum_above(g));
    const J diag = (A1 - dt * fv * h2s) * y + (dt * A1) * (y1 * w) + dt2 * (loc1 + h2 * Rn - 0.25 * g);

    // columns of M - dt^2 K - dt D per link: c0 (own joint) and cm (joints below), in world axes
    const J mn = -(2 * dt) * (h * m) + dt2 * Q, mt = -h - (2 * dt) * (h1 * w) - dt2 * P;
    const J on = h1 + (2 * dt) * (h2 * w) + dt2 * Px + 0.5 * mn, ot = dt2 * Qx - (2 * dt) * (h1 * m) + 0.5 * mt;
    const J cmx = mt * c - mn * sn, cmy = mn * c + mt * sn, c0x = ot * c - on * sn, c0y = on * c + ot * sn;
    const J tx = -(h * c), ty = -(h * sn), ox = 0.5 * tx - h1 * sn, oy = 0.5 * ty + h1 * c;  // rows, likewise
    J Fx[N], Fy[N], sx{}, sy{};  // mass times column of the position P_p; lanes are the columns
    for (int p = 0; p < N; p++) {
      sx = below(p, sx + cmx[p], only(p, c0x, J{}));
      sy = below(p, sy + cmy[p], only(p, c0y, J{}));
      Fx[p] = mass[p] * sx; Fy[p] = mass[p] * sy;
    }
    J acc{}, Yx{}, Yy{};
    for (int l = N - 1; l >= 0; l--) {
      Yx += Fx[l]; Yy += Fy[l];
      const J row = M0[l] + acc + Yx * ox[l] + Yy * oy[l] + below(l + 1, J{} + q[l], q) + only(l, diag, J{}) +
                    (SS[l] * Uh + SD[l] * Us) * h1[l] + (DS[l] * Uh + DD[l] * Us) * s1[l];
      acc += Yx * tx[l] + Yy * ty[l];
      for (int j = 0; j < N; j++) A[l][j] = row[j];
      r[l] = rhs[l];
    }
  }

  INLINE void step(State& x, const M& Gm) const {
    T A[N][N], d[N];
    M rt;
    J Uh, Us, dv{};
    system(x, Gm, A, d, rt, Uh, Us);
    lu_solve<T, N>(A, d);
    for (int j = 0; j < N; j++) dv[j] = d[j];
    x.w += dv;
    x.a += dt * x.w;
    x.om += iat * (rt + B * route(Uh * dv, Us * dv));
    x.th += dt * x.om;
  }
};

// -------------------------------------------------------------------------------------------------------- benchmark
static const double KS3[] = {600, 600, 200}, KS4[] = {800, 600, 200, 200};
static const double RL3[] = {1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}, RR3[] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1};
static const double RL4[] = {1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
static const double RR4[] = {0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
static const double PULL3[] = {60, 15, 50, 20}, PULL4[] = {50, 15, 25, 20, 15};  // motor torque = -B times this

template <class T, int N> struct Run {
  using Model = Neck<T, N>;
  Model model;
  typename Model::State x;
  typename Model::M Gm{};
  Run(double dt) : model(Params(), N == 3 ? KS3 : KS4, N == 3 ? RL3 : RL4, N == 3 ? RR3 : RR4, dt) {
    for (int q = 0; q < N + 1; q++) Gm[q] += -(N == 3 ? PULL3 : PULL4)[q] * model.B;
  }
  __attribute__((noinline)) void go(int steps) {  // from rest, alpha = 0, 20 N in every tendon
    typename Model::State y{};
    for (int q = 0; q < N + 1; q++) y.th[q] += -20 / model.kc / model.B;
    for (int k = 0; k < steps; k++) model.step(y, Gm);
    x = y;
    asm volatile("" : : "r"(&x) : "memory");  // the state counts as read
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

#ifndef NECK_NO_MAIN
int main() {
  const double dt = 2e-3;
  Run<double, 3> n3(dt);
  Run<double, 4> n4(dt);
#ifdef __AVX512F__
  constexpr int lanes = 8;
  Run<v8, 3> b3(dt);
#else
  constexpr int lanes = 4;
  Run<v4, 3> b3(dt);
#endif
  double t3 = n3.time(2000, 1000), t4 = n4.time(2000, 1000), tb = b3.time(2000, 1000) / lanes;
  n3.go(100);
  printf("{\"ns_per_step_3\": %.2f, \"ns_per_step_4\": %.2f, \"ns_per_step_3_batch\": %.2f, \"lanes\": %d, ", t3, t4, tb, lanes);
  printf("\"final_3\": [");
  for (int i = 0; i < 14; i++)
    printf("%s%.17g", i ? ", " : "",
           i < 3 ? n3.x.a[i] : i < 6 ? n3.x.w[i - 3] : i < 10 ? n3.x.th[i - 6] : n3.x.om[i - 10]);
  puts("]}");
}
#endif
