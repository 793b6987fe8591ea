"""Computes on the CPU and, where the wheel was built with MPS, on the GPU; exit 0 only if all is right."""

import mps_build_sample as sample


def main() -> int:
    expected = {"double": 6.0, "negate": -3.0, "square": 9.0, "half": 1.5}
    found = {name: sample.apply(name, 3.0) for name in sample.operators()}
    print(f"mps_build_sample {sample.__version__} {sample.git_version}")
    print(f"CPU: {found}")
    right = found == expected
    if sample.mps_built():
        product = sample.scale_on_gpu(3.0, 2.0)
        print(f"GPU: 3.0 * 2.0 = {product}")
        right = right and product == 6.0
    else:
        print("GPU: not built in")
    print("right" if right else "WRONG")
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
