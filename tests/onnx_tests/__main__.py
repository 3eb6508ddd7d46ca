"""The command: see the docstring of the package."""

import argparse
import sys
from collections import Counter

from onnx_tests import page
from onnx_tests.runner import results
from onnx_tests.suite import matching, suite


def main() -> int:
    """Run the tests that the command line selects."""
    parser = argparse.ArgumentParser(prog="onnx_tests", description="Run ONNX's own tests.")
    parser.add_argument("patterns", nargs="*", help="names of tests, such as 'test_add*' or 'simple/*'")
    parser.add_argument("--jobs", type=int, default=2, help="number of processes")
    parser.add_argument("--write", action="store_true", help="write outcomes.txt and the page of the documentation")
    options = parser.parse_args()
    whole = suite()
    tests = list(matching(whole.tests(), options.patterns)) if options.patterns else whole.tests()
    found = []
    for result in results(whole, tests, options.jobs):
        found.append(result)
        if options.patterns or result.shipped.failed or result.constant.failed:
            for word, outcome in (("as shipped", result.shipped), ("with constants", result.constant)):
                print(f"{result.test}, {word}: {outcome.word}{outcome.reason and f': {outcome.reason}'}", flush=True)
    counts = Counter(result.test.set for result in found)
    for name, count in counts.items():
        chosen = [result for result in found if result.test.set == name]
        shipped, constant = (sum(getattr(each, word).passed for each in chosen) for word in ("shipped", "constant"))
        failed = sum(each.shipped.failed or each.constant.failed for each in chosen)
        print(f"{name}: {count} tests, {shipped} pass as shipped, {constant} with constant inputs, {failed} fail")
    changes = page.changes(found)
    print(*changes, sep="\n")
    if options.write and not options.patterns:
        page.write(found)
        return 0
    return int(any(result.shipped.failed or result.constant.failed for result in found) or bool(changes))


if __name__ == "__main__":
    sys.exit(main())
