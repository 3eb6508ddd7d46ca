/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/* Inputs of the network and expected outputs: @ORIGIN@. */
#ifndef SAMPLE_H
#define SAMPLE_H

@INCLUDES@

@ARRAYS@

#endif /* SAMPLE_H */
