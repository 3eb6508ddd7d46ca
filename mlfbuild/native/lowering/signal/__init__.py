"""Calls for ``graph/ops/signal``: Fourier transforms and the features of sound.

There are two kinds of Fourier transforms, which share no code, because they have different judges:

- SignalRfft and SignalIrfft of TensorFlow Lite Micro (``fourier``): int16, int32 and float32, bit for bit with the
  roundings of KISS FFT. The length is twice a product of 2, 3 and 5.
- DFT of ONNX and RFFT2D of TFLite (``dft``): float32 of any length, within the tolerance. Odd primes cost as much as
  their size.

Both use that a transform of n real samples is one of n / 2 complex numbers (even and odd samples), plus a separation of
the two spectra. That halves work and memory. A Dft does so for real input of even length, unless it is inverse.

The rules:

1. The roots of unity are constants, computed in double and rounded as the reference rounds them. For ``fourier`` they
   are in the order in which the stages read them, so that a kernel has one pointer and no index; the roots of the
   separation are last, or first for the inverse. Python's ``math`` computes those, because functions of numpy may
   differ in the last bit, which rounding can magnify.
2. Stages of integers divide by their size before they add, so that the spectrum is divided by the length and nothing
   overflows that does not overflow in TensorFlow Lite Micro. Sums wrap around there, and here.
3. ``fourier`` works in its output, and needs no scratch memory: ``order`` has the place of each input before the
   first stage. ``dft`` writes each stage to other memory than it reads, so it needs scratch memory for two transforms,
   16 bytes for each complex number.
4. RFFT2D transforms rows and then columns, in place; if rows are cut or padded, the spectra of the rows are in scratch
   memory, because the output has another number of rows.
5. int16 has kernels with DSP (a complex number is a word) and for Helium (four at a time, powers of 2 from 32 samples
   on). int32 and float32 are portable.

For example, SignalRfft of 8 int16 samples 1000, 2000 ... 8000::

    stages   one of 4 for the 4 complex numbers (1000, 2000), (3000, 4000), (5000, 6000), (7000, 8000)
    result   [4500, 0, -500, 1207, -500, 500, -500, 207, -500, 0], the exact spectrum / 8 rounded

512 samples have four stages of 4, roots of 1532 bytes and an order of 512 bytes. A Dft of 512 float32 samples has roots
of 4096 bytes, and scratch memory of 4096 for 256 complex numbers.

``filter_bank``, ``spectrum`` and ``framing`` are the other operators of TensorFlow Lite Micro's signal library, in
integers. Those with a state (``framing``, the delay, the estimate of noise) update it in place.
"""
