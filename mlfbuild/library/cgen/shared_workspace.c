/* A common symbol: the linker merges those of all models into one, as large as the largest. */
${attributes} ${declarator};

#ifndef NDEBUG
/* Not 0 while a model runs in the shared workspace; also merged into one. */
${flag_attributes} volatile uint8_t ${flag};

static int ${prefix}_enter(void)
{
#if defined(__GCC_ATOMIC_CHAR_LOCK_FREE) && __GCC_ATOMIC_CHAR_LOCK_FREE == 2
    return __atomic_exchange_n(&${flag}, 1, __ATOMIC_ACQUIRE) == 0;
#else
    /* This core has no atomic exchange: a call between these two lines is not detected. */
    const int entered = ${flag} == 0;
    ${flag} = 1;
    return entered;
#endif
}

static void ${prefix}_leave(void)
{
#if defined(__GCC_ATOMIC_CHAR_LOCK_FREE) && __GCC_ATOMIC_CHAR_LOCK_FREE == 2
    __atomic_store_n(&${flag}, 0, __ATOMIC_RELEASE);
#else
    ${flag} = 0;
#endif
}
#endif
