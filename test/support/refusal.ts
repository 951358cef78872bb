/** A call as JavaScript makes it, which no compiler checks: its name, the function, its arguments, and its object. */
export type UncheckedCall = readonly [name: string, call: unknown, args: readonly unknown[], on?: unknown]

/** The calls for `it.each`, whose title may have `$name` and `$args`. */
export function named(calls: readonly UncheckedCall[]) {
  return calls.map((call) => ({ name: call[0], args: call[2], call }))
}

/** The error of a call, thrown or as the rejection of its promise; undefined if there is none. */
export async function refusalOf([name, call, args, on]: UncheckedCall): Promise<unknown> {
  if (typeof call !== 'function') throw new TypeError(`${name} is no function`)
  try {
    await Reflect.apply(call, on, args)
    return undefined
  } catch (error) {
    return error
  }
}
