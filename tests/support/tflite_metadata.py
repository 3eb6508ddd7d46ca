"""TFLite files that contain only metadata."""

import flatbuffers


def metadata(**texts: str) -> bytes:
    """Return a flatbuffer of TFLite Metadata in the form of tflite-support: root table ModelMetadata."""
    slots = {"name": 0, "description": 1, "version": 2, "author": 4, "license": 5}
    builder = flatbuffers.Builder()
    strings = {name: builder.CreateString(text) for name, text in texts.items()}
    builder.StartObject(8)
    for name, offset in strings.items():
        builder.PrependUOffsetTRelativeSlot(slots[name], offset, 0)
    builder.Finish(builder.EndObject(), file_identifier=b"M001")
    return bytes(builder.Output())


def described(description: str, entry: bytes | None = None, *, name: str = "TFLITE_METADATA", buffer: int = 0) -> bytes:
    """Return a TFLite file with a description and metadata in buffer 0; the entry refers to ``buffer``."""
    builder = flatbuffers.Builder()
    text = builder.CreateString(description)
    slots = {3: text}
    if entry is not None:
        data = builder.CreateByteVector(entry)
        builder.StartObject(1)
        builder.PrependUOffsetTRelativeSlot(0, data, 0)
        slots[4] = _vector(builder, builder.EndObject())
        title = builder.CreateString(name)
        builder.StartObject(2)
        builder.PrependUOffsetTRelativeSlot(0, title, 0)
        builder.PrependUint32Slot(1, buffer, 99)
        slots[6] = _vector(builder, builder.EndObject())
    builder.StartObject(8)
    builder.PrependUint32Slot(0, 3, 0)
    for slot, offset in slots.items():
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    builder.Finish(builder.EndObject(), file_identifier=b"TFL3")
    return bytes(builder.Output())


def _vector(builder: flatbuffers.Builder, element: int) -> int:
    builder.StartVector(4, 1, 4)
    builder.PrependUOffsetTRelative(element)
    return int(builder.EndVector())
