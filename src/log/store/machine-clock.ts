/** Reads a clock that is never set and that all processes of a machine share: the time since its start without suspensions, in ms. */
export const machineClock = (): number => Number(process.hrtime.bigint() / 1_000_000n)
