int sound_works(void);
