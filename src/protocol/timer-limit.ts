/** The longest delay that `setTimeout` takes, in ms, some 24 days. It runs a longer one immediately. */
export const MAX_TIMER_DELAY = 2 ** 31 - 1
