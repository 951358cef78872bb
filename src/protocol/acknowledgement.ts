import type { Gate } from './gate.ts'

/** The property of a value that its source wants acknowledged. Enumerable, so that copies of the value have it too. */
export const ACKNOWLEDGER: unique symbol = Symbol('acknowledger')

/** Takes the acknowledgements of one subscription to a source. */
export interface Acknowledger {
  /** The value at this position, or a part of it, came to a subscriber that will acknowledge or release it. */
  received(position: string): void
  /**
   * It was handled, or dropped on purpose. Once all that was received is acknowledged, that is saved soon; a failure to save
   * is an error of the source.
   */
  acknowledge(position: string): void
  /** It was received, and will not be acknowledged. */
  release(position: string): void
}

/** A value that its source wants acknowledged. */
interface Acknowledgeable {
  readonly position: string
  readonly [ACKNOWLEDGER]: Acknowledger
}

/** A value without a position came to `deliver` or `for await` from a source whose values are acknowledged. */
export class AcknowledgementError extends Error {
  override readonly name = 'AcknowledgementError'
  /** The same value fails again, and `deliver` does not retry. */
  readonly retryable = false

  constructor() {
    super(
      'a value without a position came from a consumer of the log, so it cannot be acknowledged: keep the position with ' +
        '`map((entry) => keepPosition(entry, value))`, or transform entries within the handler',
    )
  }
}

// Gates under which a source wants its values acknowledged.
const acknowledging = new WeakSet<Gate>()

/** The values that come through this gate have to be acknowledged. */
export function expectAcknowledgements(gate: Gate): void {
  acknowledging.add(gate)
}

/**
 * Reports that a value came to somebody who will acknowledge it. The value may be an array.
 *
 * @param gate The gate that the value came through.
 * @throws AcknowledgementError where the source expects what the value cannot give.
 */
export function receive(value: unknown, gate: Gate): void {
  const isExpected = acknowledging.has(gate)
  const values = acknowledgeablesIn(value, isExpected)
  if (values === undefined && isExpected) throw new AcknowledgementError()
  for (const { position, [ACKNOWLEDGER]: acknowledger } of values ?? []) acknowledger.received(position)
}

/** Acknowledges a value, or each value of an array. */
export function acknowledge(value: unknown): void {
  for (const { position, [ACKNOWLEDGER]: acknowledger } of acknowledgeablesIn(value, false) ?? []) {
    acknowledger.acknowledge(position)
  }
}

/** Acknowledges a value that was not received, as far as others that received it permit. */
export function drop(value: unknown): void {
  for (const { position, [ACKNOWLEDGER]: acknowledger } of acknowledgeablesIn(value, false) ?? []) {
    acknowledger.received(position)
    acknowledger.acknowledge(position)
  }
}

/** Reports that a value that was received will not be acknowledged. */
export function release(value: unknown): void {
  for (const { position, [ACKNOWLEDGER]: acknowledger } of acknowledgeablesIn(value, false) ?? []) {
    acknowledger.release(position)
  }
}

/** The value with the position of the entry that it was made of, so that `deliver` can acknowledge that. */
export function keepPosition<T extends object>(entry: object, value: T): T {
  if (isAcknowledgeable(entry)) {
    return { ...value, position: entry.position, [ACKNOWLEDGER]: entry[ACKNOWLEDGER] }
  }
  throw new AcknowledgementError()
}

/** Undefined where the value, or one in its array, has no position. */
function acknowledgeablesIn(value: unknown, isExpected: boolean): readonly Acknowledgeable[] | undefined {
  if (isAcknowledgeable(value)) return [value]
  // An array of something else is not searched.
  if (!Array.isArray(value) || !(isExpected || isAcknowledgeable(value[0]))) return undefined
  return value.every(isAcknowledgeable) ? value : undefined
}

function isAcknowledgeable(value: unknown): value is Acknowledgeable {
  return typeof value === 'object' && value !== null && ACKNOWLEDGER in value
}
