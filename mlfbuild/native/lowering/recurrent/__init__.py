"""Calls for ``graph/ops/recurrent``: recurrent layers, which keep a state from step to step.

LSTM, GRU, RNN and SVDF are loops over a sequence. One call does all steps, because a step depends on the one before;
only the products with the row of inputs could be done for all steps at once, and that would need memory for all gates.

Data, for ``units`` U, ``inputs`` F and ``gates`` G (LSTM 4, GRU 3, RNN 1):

- weights [U, G, F] over the row of inputs, recurrent weights [U, G, U] over the hidden row. Files have [G, U, ...]:
  here the gates of a unit become neighbours, so that one load of the row serves all of them.
- biases: of integers, int32 [U, 2, 4] with both zero points folded in, for the sums over each row.
- rescalings: eight for an LSTM, of the sums of each gate over each row, and three of the products of gates.

The rules:

1. The hidden row of a step is the row of the result, and the next step reads it there. So a call needs no memory for
   states, except for the first and the last one.
2. A state that is kept between runs is updated in place (``KernelCall.updates``), through one pointer; without a state
   of the graph, the values before and after are separate inputs and outputs of the network.
3. Integer gates are Q3.12 before squashing and Q0.15 after it, as in TensorFlow Lite Micro's lstm_eval. The sums over
   inputs and over the hidden row are rescaled, rounded and clamped separately; adding before rescaling would be more
   exact and give other numbers.
4. LOGISTIC and TANH of integers interpolate one table. It holds the function minus 1/2 for both signs, 513 entries,
   because tanh(x) = 2 * logistic(2 x) - 1.
5. With DSP, int8 uses packed weights (``lstm_dsp.h``), if no sum leaves 30 bits, the sums of the second gate of a pair
   fit in 24 bits, and no factor shifts left by more than 8 bits. Otherwise, and on Helium, the portable kernel runs.

Which of them need scratch memory: the LSTM with DSP expands both rows to 16 bits, 2 bytes for each of F + U, rounded
up to four. A GRU whose reset multiplies the state (not the product with it) needs the products of all units before the
next gate, 4 * U bytes. The others need none.

For example, an int8 LSTM of 40 inputs and 64 units over 10 steps::

    portable   weights 10240 and 16384 bytes, biases 2048, rescalings 64, table 1026; no scratch
    dsp        packed 28672 bytes, the same without padding, since both rows are multiples of four; 208 bytes scratch

On the Cortex-M4 that takes 1.34 instructions for each product in int8 (packed), and 1.85 in float32.

There are no peepholes, projections or layer normalisation, which TensorFlow Lite Micro does not have either. Loops with
other bodies are unrolled by the frontends.
"""
