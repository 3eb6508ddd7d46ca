/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The mlfbuild authors */
/*
 * Two marks around the measured code: `mlf_bench_begin(); tvmgen_kws_run(&in, &out); mlf_bench_end();`.
 *
 * They do nothing. A profiler counts the instructions between their addresses, and the compiler moves no memory access
 * across them.
 */
#ifndef MLF_BENCH_H_
#define MLF_BENCH_H_

#ifdef __cplusplus
extern "C" {
#endif

void mlf_bench_begin(void);
void mlf_bench_end(void);

#ifdef __cplusplus
}
#endif

#endif /* MLF_BENCH_H_ */
