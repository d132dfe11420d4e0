"""Is work in proportion to its size? Compared with itself, so that a slow or busy machine changes nothing."""

import time
from collections.abc import Callable


def is_in_proportion(work: Callable[[int], object], size: int) -> bool:
    """Whether `size` of it takes about four times what a quarter takes; quadratic work takes sixteen times as long."""

    def cpu_s(part: int) -> float:
        began = time.process_time()
        work(part)
        return time.process_time() - began

    return cpu_s(size) < 9 * cpu_s(size // 4) + 0.1
