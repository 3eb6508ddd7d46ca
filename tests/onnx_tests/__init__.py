"""Run ONNX's own tests: compile each model from its file alone, then run it on the test's data.

    PYTHONPATH=tests python -m onnx_tests                     # all tests; compares with outcomes.txt
    PYTHONPATH=tests python -m onnx_tests 'test_bitshift*'    # only these, with the reason for each refusal
    PYTHONPATH=tests python -m onnx_tests --write             # all tests; writes outcomes.txt and the page in docs/

``suite`` writes the tests as folders: ``models/<set>/<test>/model.onnx``, and the inputs and outputs in another folder.
``runner`` compiles a model to an archive, opens the data only when the archive exists, and compares what the C of the
archive computes. ``page`` writes ``benchmarks/evidence.md`` and ``outcomes.txt``, a line per test.
"""
