/** Imported before the program of a process: its wall clock is the one that the world says. Monotonic clocks stay as they are. */
const RealDate = Date
let offset = Number(process.env['OUTSIDE_CLOCK'] ?? 0)

class ShiftedDate extends RealDate {
  constructor(...given: ConstructorParameters<DateConstructor> | []) {
    if (given.length === 0) super(RealDate.now() + offset)
    else super(...given)
  }

  static override now(): number {
    return RealDate.now() + offset
  }
}
globalThis.Date = new Proxy(ShiftedDate, { apply: () => new ShiftedDate().toString() }) as DateConstructor

process.on('message', (message: { readonly clock?: number }) => {
  if (message.clock !== undefined) offset = message.clock
})

/** The time without the shift, in Unix ms. */
export function realNow(): number {
  return RealDate.now()
}
