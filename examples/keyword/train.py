"""Make the two networks of this example and the audio that the firmware hears.

    pip install -e '.[test]'                # in the repository's root: tflite-micro
    python examples/keyword/train.py        # half a minute

`frontend.tflite` is mlfbuild's front end for audio, a chain of signal operators; it computes the features of 20 ms of
samples. `words` is trained here on streams of synthesised words (speech.py) to report a word after its end. Each of its
layers keeps the features of its last 20 hops, so that a run computes only what is new.

Writes ``models/frontend.tflite`` and ``models/words.tflite``, ``tests/<name>.npz`` (the vectors for `verify`),
``audio/stream.wav`` (the samples in the firmware, of speakers that training did not hear) and ``src/stream.[ch]`` (the
words in it, and the probabilities that TensorFlow Lite Micro computes after each hop). The same seed gives the same
bytes; everything is computed in double precision, so that another BLAS makes no difference that rounding would show.
"""

from __future__ import annotations

import os
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # products are small: threads would wait for each other

import numpy as np
import numpy.typing as npt

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from speech import PHONES, Speaker, background, from_mu_law, mu_law, speak
from training.judge import tflite_micro
from training.layers import Dense, Svdf
from training.network import Labels, Network, train
from training.quantize import Range, int8_model

from mlfbuild.datasets import FrontEnd, front_end, write_tflite

SEED = 2026
SETTINGS = FrontEnd()
RATE, HOP, CHANNELS = SETTINGS.rate, SETTINGS.hop, SETTINGS.width
"""Of a run: 20 ms of samples, 40 features."""
FEATURES = Range(SETTINGS.scale, SETTINGS.zero_point)
WORDS = {"yes": "jes", "no": "nou", "left": "lef_t", "stop": "s_ta_p"}
OTHERS = {"go": "_kou", "up": "A_p", "right": "rai_t", "off": "of", "on": "an", "three": "_tri", "four": "for",
          "cat": "_ka_t", "tell": "_tel", "sun": "sAn", "yell": "jel", "top": "_ta_p", "never": "nefA"}  # fmt: skip
STREAM = ("yes", "house", "left", "no", "stop")
"""The words in the firmware; the network was not trained with all of them."""
UNHEARD = {"house": "haus"}
HOPS = 250
"""Of a stream, 5 s."""
STREAMS, JUDGED = 200, 40
REPORT = range(1, 7)
"""Hops after a word's end in which the network is trained to report it."""
AROUND = 8
"""Hops before and after these in which any output is right."""

AVERAGED, LEAST, PAUSE = 4, 717, 25
"""A word counts if the sum of its probabilities over some hops is so high, 70 %, and some hops after the last one."""
MINIMUM_ACCURACY = 0.9
VECTORS = {"frontend": 32, "words": 100}

Audio = npt.NDArray[np.int16]
Integers = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Spoken:
    """A word of a stream; ``end`` is the hop in which it ends, ``label`` its number or 0."""

    word: str
    label: int
    end: int


def other_word(random: np.random.Generator) -> tuple[str, str]:
    """Return one of the other words, or phones in an order that is none of the words to recognise."""
    if random.uniform() < 0.5:
        name = str(random.choice(list(OTHERS)))
        return name, OTHERS[name]
    consonants = [name for name in PHONES if name not in "ieaouA_"]
    while True:
        head, tail = (str(random.choice(["", *consonants])) for _ in range(2))
        vowels = "".join(random.choice(list("ieaouA"), size=random.integers(1, 3)))
        phones = "".join(f"_{phone}" if phone in "tpk" else phone for phone in f"{head}{vowels}{tail}")
        if phones not in WORDS.values():
            return phones, phones


def compose(words: list[tuple[str, str]], speaker: Speaker, random: np.random.Generator) -> tuple[Audio, list[Spoken]]:
    """Return a stream of ``words`` in noise, and those that fit into it."""
    level, quieter = 3000 * 10 ** random.uniform(-1.0, 0.0), 10 ** random.uniform(-1.4, -0.5)
    samples = quieter * level * background(HOPS * HOP, random)
    names, spoken, at = list(WORDS), [], int(random.uniform(0.2, 0.4) * RATE)
    for name, phones in words:
        word = level * random.uniform(0.8, 1.2) * speak(phones, speaker, random)
        end = at + len(word)
        if end > len(samples) - 10 * HOP:
            break
        samples[at:end] += word
        spoken.append(Spoken(name, names.index(name) + 1 if name in WORDS else 0, end // HOP))
        at = end + int(random.uniform(0.25, 0.4) * RATE)
    return np.clip(np.rint(samples), -32768, 32767).astype(np.int16), spoken


def draw(random: np.random.Generator) -> tuple[Audio, list[Spoken]]:
    """Return a stream of about six words, four of them to be recognised."""
    names = list(WORDS)
    words = [(name, WORDS[name]) if random.uniform() < 0.65 else other_word(random)
             for name in random.choice(names, size=8)]  # fmt: skip
    return compose(words, Speaker.draw(random), random)


def labels_of(spoken: list[Spoken]) -> Labels:
    """Return the label of each hop, -1 where any output is right."""
    labels = np.zeros(HOPS, np.int64)
    for each in (each for each in spoken if each.label):
        labels[max(0, each.end + REPORT.start - AROUND) : each.end + REPORT.stop + AROUND] = -1
        labels[each.end + REPORT.start : each.end + REPORT.stop] = each.label
    return labels


def features_of(model: bytes, samples: Audio) -> Integers:
    """Return the features of a stream, [hops, 40], which TensorFlow Lite Micro computes."""
    return tflite_micro(model, samples.reshape(-1, HOP))[:, 0]


def make_network(random: np.random.Generator) -> Network:
    """Return an untrained network for streams of ``HOPS``, about three thousand weights in double precision."""
    network = Network(
        (
            Svdf("first", random, inputs=CHANNELS, units=32, memory=20, hops=HOPS),
            Svdf("second", random, inputs=32, units=24, memory=20, hops=HOPS),
            Dense("scores", random, inputs=24, outputs=len(WORDS) + 1, relu=False),
        )
    )
    for layer in network.layers:
        layer.parameters = [values.astype(np.float64) for values in layer.parameters]
    return network


def recognise(probabilities: Integers) -> list[tuple[int, int]]:
    """Return hops and labels of the words that the firmware recognises, by the same rule as src/main.c."""
    found, rest = [], 0
    for hop in range(AVERAGED - 1, len(probabilities)):
        sums = (probabilities[hop - AVERAGED + 1 : hop + 1].astype(int) + 128).sum(axis=0)
        best = int(sums.argmax())
        rest = max(0, rest - 1)
        if best and not rest and sums[best] >= LEAST:
            found.append((hop, best))
            rest = PAUSE
    return found


def judge(model: bytes, streams: list[tuple[Integers, list[Spoken]]]) -> tuple[int, int, int]:
    """Return the number of words to be recognised, of those that were, and of reports that are wrong."""
    words = right = wrong = 0
    for features, spoken in streams:
        found = recognise(tflite_micro(model, features[:, np.newaxis])[:, 0])
        expected = [each for each in spoken if each.label]
        hits = [any(each.label == label and -AROUND <= hop - each.end <= REPORT.stop + AROUND for hop, label in found)
                for each in expected]  # fmt: skip
        words, right, wrong = words + len(expected), right + sum(hits), wrong + len(found) - sum(hits)
    return words, right, wrong


def write_wav(path: Path, coded: npt.NDArray[np.uint8]) -> None:
    """Write mu-law bytes as a .wav file, which any player plays."""
    form = struct.pack("<HHIIHHH", 7, 1, RATE, RATE, 1, 8, 0)  # 7 is mu-law; one channel
    chunks = b"fmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(coded)) + coded.tobytes()
    path.write_bytes(b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks)


def write_stream(folder: Path, spoken: list[Spoken], probabilities: Integers) -> None:
    """Write as C what is spoken in the stream, and what the host computed."""
    hops, classes = probabilities.shape
    (folder / "stream.h").write_text(
        f"""\
/* The audio that the firmware hears, and what TensorFlow Lite Micro computed from it. Generated by train.py. */
#ifndef STREAM_H
#define STREAM_H

#include <stdint.h>

#define STREAM_HOPS {hops}
#define STREAM_HOP {HOP} /* samples at 16 kHz: 20 ms */
#define STREAM_CLASSES {classes}
#define STREAM_WORDS {len(spoken)}

struct stream_word {{
    const char *name;
    uint8_t label; /* the class of the word, 0 if it is not one of those to be recognised */
}};

extern const uint8_t stream_audio[STREAM_HOPS * STREAM_HOP];  /* audio/stream.wav without its header, mu-law */
extern const char *const stream_names[STREAM_CLASSES];
extern const struct stream_word stream_words[STREAM_WORDS];   /* in the order in which they are spoken */
extern const int8_t stream_host[STREAM_HOPS][STREAM_CLASSES]; /* probabilities after each hop */

#endif /* STREAM_H */
"""
    )
    names = ", ".join(f'"{name}"' for name in ("", *WORDS))
    (folder / "stream.c").write_text(
        "\n".join(
            [
                "/* Generated by train.py. */",
                '#include "stream.h"',
                "",
                "/* clang-format off */",
                f"const char *const stream_names[STREAM_CLASSES] = {{{names}}};",
                "",
                "const struct stream_word stream_words[STREAM_WORDS] = {",
                *(f'    {{"{each.word}", {each.label}}},' for each in spoken),
                "};",
                "",
                "const int8_t stream_host[STREAM_HOPS][STREAM_CLASSES] = {",
                *(f"    {{{', '.join(map(str, row))}}}," for row in probabilities.tolist()),
                "};",
                "",
            ]
        )
    )


def main() -> None:
    random = np.random.default_rng(SEED)
    frontend = front_end(SETTINGS)
    drawn = [draw(random) for _ in range(STREAMS + JUDGED)]
    features = np.stack([features_of(frontend, samples) for samples, _ in drawn])
    labels = np.stack([labels_of(spoken) for _, spoken in drawn])
    real = (features.astype(np.float64) - FEATURES.zero_point) * FEATURES.scale

    network = make_network(random)
    train(
        network, real[:STREAMS], labels[:STREAMS], random=random, epochs=50, rate=3e-3, batch=8, decay=1e-3,
        augment=lambda batch, _: batch.reshape(-1, CHANNELS),
    )  # fmt: skip
    seen = real[:STREAMS].reshape(-1, CHANNELS)
    words = write_tflite(int8_model(network, seen, FEATURES, description="words", names=("features", "probabilities")))
    total, right, wrong = judge(words, [(features[at], drawn[at][1]) for at in range(STREAMS, STREAMS + JUDGED)])
    print(f"{total} words of new speakers: {right} recognised, {wrong} wrong reports  ({len(words)} bytes)")
    if right - wrong < MINIMUM_ACCURACY * total:
        sys.exit(f"less than {MINIMUM_ACCURACY:.0%}: nothing written")

    said = [(name, {**WORDS, **UNHEARD}[name]) for name in STREAM]
    samples, spoken = compose(said, Speaker.draw(random), random)
    coded = mu_law(samples[: (spoken[-1].end + REPORT.stop + AROUND) * HOP])
    heard = from_mu_law(coded).reshape(-1, 1, HOP)[:, 0]
    stream = tflite_micro(frontend, heard)
    probabilities = tflite_micro(words, stream)
    found = [label for _, label in recognise(probabilities[:, 0])]
    print("spoken:", *(each.word for each in spoken), " recognised:", *(list(WORDS)[label - 1] for label in found))
    if found != [each.label for each in spoken if each.label] or len(spoken) != len(STREAM):
        sys.exit("other words than those spoken: nothing written")

    (HERE / "models/frontend.tflite").write_bytes(frontend)
    (HERE / "models/words.tflite").write_bytes(words)
    for name, inputs, outputs in (("frontend", heard, stream), ("words", stream, probabilities)):
        count = VECTORS[name]
        np.savez_compressed(HERE / f"tests/{name}.npz", in0=inputs[:count], out0=outputs[:count])
    write_wav(HERE / "audio/stream.wav", coded)
    write_stream(HERE / "src", spoken, probabilities[:, 0])


if __name__ == "__main__":
    main()
