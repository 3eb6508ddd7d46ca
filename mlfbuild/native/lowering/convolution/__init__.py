"""Calls for ``graph/ops/convolution``: filters that move over an image, with a kernel for each kind of core.

    conv2d.lower, depthwise_conv2d.lower -> choose -> the file of each candidate -> KernelCall, or a reason (str)

A convolution is most of the work of a network, so it has a kernel of its own for each core and type. All of them
compute the sums and the rescaling of the numpy reference, bit for bit in integers. They differ in the multiplication
that the core offers, in the order of the weights, which are reordered here in Python, and in their scratch memory.
What all of them read of a node is in ``common/layer``.

    core       multiplication                    tile                     cost of the inner loop
    portable   one product each, C99             1 pixel, 4 channels      11 instructions for 4 products (Armv7-M)
    thumb      MULS, two pixels in a word        4 or 2 pixels            33 instructions for 16 products
    dsp        SMLAD, two channels in a word     3 or 2 pixels, 2 chan.   24 cycles for 24 products (Cortex-M4)
    dsp long   SMLAL, numbers of two digits      6 pixels                 27 cycles for 36 products (Cortex-M4)
    mve        VMLADAVA, 16 products of int8     2 pixels, 4 channels     14 instructions for 128 products
    vfp        VFMA, one product of float32      4 pixels, 4 channels     39 instructions for 32 products

The rules of the choice for CONV_2D, of which the first that fits decides:

1. Weights that still have a zero point (uint8 networks) need the sum of the inputs as well: ``conv2d_offset_dsp``, or
   portable C (``common/convolution``).
2. int8 on cores with DSP, but without MVE, that issue one instruction at a time (all but the Cortex-M7):
   ``conv2d_long_dsp`` for one image with a 3x3 filter, stride 1, dilation 1 and one column of padding on both sides. It
   needs a multiple of 4 input channels, at least 8, and outputs of at least 6 columns and 256 pixels (any number in a
   chain). Its scratch memory must not exceed that of ``conv2d_dsp``, so it is used only if that gets three windows, and
   if there are at most 1.5 times as many output as input channels.
3. The kernels of the type (``common/candidates``). With MVE, int8 tries ``conv2d_4x2_mve``, which is for windows of at
   most 32 bytes and several channels whose activation clamps no int8, then ``conv2d_mve``, then ``conv2d_dsp``.
4. Otherwise portable C, which has no conditions. So every node can be lowered for every core.

A file of an extension returns the reason if its kernel does not support the node or would not be exact; the reason is
printed in the archive's ``plan.json``, and the next candidate is tried. Fast kernels assume more than the reference:
that no sum leaves 32 bits, that two weights fit into 16 bits together, or that one rounding gives the same byte as two.
That depends on constants only, so the compiler proves it from the weights of each channel (``common/dsp``), and the
generated C has no test for it.

Which kernels need what scratch memory, and why:

- portable: none. It reads the image and the filter in place, and taps in the padding are left out.
- dsp: 2 bytes for each input of 3 or 2 windows, because SMLAD needs inputs of 16 bits, and expanding them once serves
  all output channels. Two windows are always granted, even if they raise the network's peak; a third one only if it
  does not (``spare_memory``).
- dsp long: 48 bytes for each input channel and 4 for each output channel, for pairs of pixels and carries.
- thumb: 2 bytes for each input of 4 or 2 windows, packed into words. Up to 1280 bytes for four and 1024 for two are
  always granted, more only if the peak does not rise. Otherwise a kernel reads one pixel in place (``conv2d_direct``),
  which takes 60 % more instructions.
- mve: windows that reach into the padding, or all of them if their rows are shorter than a vector, as in first layers;
  the others are read in place. 1x1 filters copy some pixels, so that the output can take the place of the input.
- vfp: none in the arena, but 24 bytes of stack for each tap.
- depthwise on dsp, thumb and mve: planes with the rows under the filter of a few channels. Neighbours in memory are
  other channels, while the products of a sum belong to one.

For example, a 3x3 convolution with padding of an int8 image of 16x16 from 16 to 32 channels has windows of 144 inputs.
As the only node of a network, it is the peak itself, so that no memory is spare::

    host, rv32imc           conv2d.h         no scratch memory
    cortex-m0plus, -m3      conv2d_thumb.h   1152 bytes    4 windows * 144 * 2
    cortex-m4, -m7, -m33    conv2d_dsp.h      576 bytes    2 windows * 144 * 2, which are always granted
    cortex-m55, -m85        conv2d_mve.h      304 bytes    2 windows * 144, and a vector of 16

``conv2d_long_dsp`` is refused on the Cortex-M4 and M33, because it would need 48 * 16 + 4 * 32 = 896 bytes.

These files do not decide how many rows run at a time (``line_buffer``), whether the output takes the place of the input
(``overwrites`` only permits it), or where the scratch memory is (``memory/plan``). The headers of the kernels describe
layouts and costs.
"""
