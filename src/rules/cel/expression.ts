import type { Json } from '../../protocol/json.ts'

/** Why an expression has no value: a field that the event does not have, or an operation that failed. */
export class Problem {
  readonly kind: 'missing' | 'error'
  /** The path of the field, or the message. */
  readonly detail: string

  constructor(kind: 'missing' | 'error', detail: string) {
    this.kind = kind
    this.detail = detail
  }
}

/** A checked CEL expression. It can be evaluated any number of times. */
export interface Expression {
  readonly text: string
  /** The arguments of its calls of `changed()`, in order. At most 3. */
  readonly watched: readonly Expression[]
  /**
   * Its value for an event, as JSON.
   *
   * @param changed For each of {@link watched}, whether its value differs from the value for the key's last event.
   */
  evaluate(view: EventView, changed?: readonly boolean[]): Json | Problem
}

/** An event as expressions see it. It caches computed values: make one view for each event. */
export interface EventView {
  /** Whether a text was cut (`text()`), so far. */
  readonly isCut: boolean
  /** The work that its expressions may still do. One that needs more is a {@link Problem}. */
  readonly work: { left: number }
}

/** A text with `${…}`. */
export interface Template {
  readonly text: string
  /** The parts that depend on the event, evaluated; a missing field gives an empty text. Kept for `render`. */
  fromEvent(view: EventView): readonly string[]
  /** The text. `parts` are of {@link fromEvent}; absent if there was no event. */
  render(parts: readonly string[], alert: AlertScope): string
}

/** The values of an alert that a text can name. */
export interface AlertScope {
  readonly key: Readonly<Record<string, string>>
  readonly labels: Readonly<Record<string, string>>
  readonly value: number | string | null
}
