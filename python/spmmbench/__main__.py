"""`python -m spmmbench run ...`: the program, which a wheel of scripts/wheel.sh has beside this file."""

import os
import pathlib
import sys


def main():
    program = pathlib.Path(__file__).with_name("spmmbench")
    if not program.exists():
        sys.exit(
            f"spmmbench: {program} does not exist: this package was installed without the program, "
            "which is in the wheels that scripts/wheel.sh makes"
        )
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    main()
