import { ArgumentError } from './argument-error.ts'
import type { Gate } from './gate.ts'
import { RivuletError } from './rivulet-error.ts'

/** The property of a value that its source wants acknowledged. Enumerable, so that copies of the value have it too. */
export const ACKNOWLEDGER: unique symbol = Symbol('acknowledger')

/** Takes the acknowledgements of one subscription to a source. */
export interface Acknowledger {
  /** The value at this position, or a part of it, came to a subscriber that will acknowledge or release it. */
  received(position: string): void
  /**
   * The value was handled, or dropped on purpose. Once all received values are acknowledged, this is saved soon; a failure to save is an
   * error of the source.
   */
  acknowledge(position: string): void
  /** The value was received, and was emitted to the next subscriber, which may have received it too. */
  handedOn(position: string): void
  /** The value was received, and will not be acknowledged. */
  release(position: string): void
  /** The value could not be handled. */
  deadLetter(position: string, failure: Failure): void
}

/** Why a value could not be handled. */
export interface Failure {
  /** The error of the last attempt. */
  readonly error: unknown
  readonly attempts: number
}

/** A value that its source wants acknowledged. */
interface Acknowledgeable {
  readonly position: string
  readonly [ACKNOWLEDGER]: Acknowledger
}

// The property of a value that was made of entries.
const KEPT: unique symbol = Symbol('kept positions')

interface Kept {
  readonly [KEPT]: readonly Acknowledgeable[]
}

/** A value without a position came to `deliver` or `for await` from a source whose values are acknowledged. */
export class AcknowledgementError extends RivuletError {
  override readonly name = 'AcknowledgementError'
  override readonly code = 'acknowledgement'

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

/** The values that come through the second gate have to be acknowledged if those of the first one do. */
export function passExpectation(from: Gate, to: Gate | undefined): void {
  if (to !== undefined && acknowledging.has(from)) acknowledging.add(to)
}

// What operators do when their source cannot go on without acknowledgements, by the gates that they subscribe through.
const awaiting = new WeakMap<Gate, (count: number) => void>()

/**
 * Sets what an operator that holds values back does when the source of this gate cannot go on without acknowledgements.
 *
 * @param awaited Called with the number of values that are not acknowledged. 0 stands for any number.
 */
export function onAcknowledgementsAwaited(gate: Gate, awaited: (count: number) => void): void {
  awaiting.set(gate, awaited)
}

/** Asks the operator at this gate for the values that it holds back, if it holds so many: the source waits for their acknowledgement. */
export function awaitAcknowledgements(gate: Gate | undefined, count: number): void {
  if (gate !== undefined) awaiting.get(gate)?.(count)
}

/**
 * Reports that a value was received by a consumer that will acknowledge it. The value may be an array.
 *
 * @param gate The gate that the value came through.
 * @throws AcknowledgementError if the source expects an acknowledgement that the value cannot give.
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

/** Acknowledges a value that was not received, unless a consumer that received it has still to acknowledge it. */
export function drop(value: unknown): void {
  for (const { position, [ACKNOWLEDGER]: acknowledger } of acknowledgeablesIn(value, false) ?? []) {
    acknowledger.received(position)
    acknowledger.acknowledge(position)
  }
}

/** Reports that a value that was received was emitted to the next subscriber. */
export function handOn(value: unknown): void {
  for (const { position, [ACKNOWLEDGER]: acknowledger } of acknowledgeablesIn(value, false) ?? []) {
    acknowledger.handedOn(position)
  }
}

/** Reports that a value that was received will not be acknowledged. */
export function release(value: unknown): void {
  for (const { position, [ACKNOWLEDGER]: acknowledger } of acknowledgeablesIn(value, false) ?? []) {
    acknowledger.release(position)
  }
}

/**
 * Reports that a value that was received cannot be handled, before it is acknowledged.
 *
 * @throws AcknowledgementError for a value that does not come from a consumer of a log.
 */
export function deadLetter(value: unknown, failure: Failure): void {
  const values = acknowledgeablesIn(value, true)
  if (values === undefined) throw new AcknowledgementError()
  for (const { position, [ACKNOWLEDGER]: acknowledger } of values) acknowledger.deadLetter(position, failure)
}

/**
 * Copies a plain object so that `deliver` and `iterate` acknowledge the entry that it was made of. Its own properties stay as
 * they are, also one with the name `position`.
 *
 * @param entry An entry of a log's consumer, a value that kept its position, or an array of these.
 * @throws ArgumentError for a value that is no plain object, such as an array or a Date: wrap it in one.
 * @throws AcknowledgementError for an entry without a position.
 */
export function keepPosition<T extends object>(entry: object, value: T): T {
  if (!isPlain(value)) throw new ArgumentError('value', 'a plain object (wrap it, as in `{ value }`)', value)
  const acknowledgeables = acknowledgeablesIn(entry, true)
  if (acknowledgeables === undefined) throw new AcknowledgementError()
  const kept = acknowledgeables.map((each) => ({
    position: each.position,
    [ACKNOWLEDGER]: each[ACKNOWLEDGER],
  }))
  return { ...value, [KEPT]: kept }
}

/** The acknowledger of a value that came from a source; undefined for another value. */
export function acknowledgerOf(value: object): Acknowledger | undefined {
  return isAcknowledgeable(value) ? value[ACKNOWLEDGER] : undefined
}

/** Undefined if the value, or one in its array, has no position. */
function acknowledgeablesIn(value: unknown, isExpected: boolean): readonly Acknowledgeable[] | undefined {
  const own = acknowledgeablesOf(value)
  // An array of something else is not searched.
  if (own !== undefined || !Array.isArray(value)) return own
  if (!isExpected && acknowledgeablesOf(value[0]) === undefined) return undefined
  const all: Acknowledgeable[] = []
  for (const each of value) {
    const some = acknowledgeablesOf(each)
    if (some === undefined) return undefined
    all.push(...some)
  }
  return all
}

function acknowledgeablesOf(value: unknown): readonly Acknowledgeable[] | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  // First: the value may be a copy of another entry.
  if (isKept(value)) return value[KEPT]
  return isAcknowledgeable(value) ? [value] : undefined
}

function isKept(value: object): value is Kept {
  return KEPT in value
}

function isAcknowledgeable(value: object): value is Acknowledgeable {
  return ACKNOWLEDGER in value
}

function isPlain(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  // The Object.prototype of another realm has no prototype either.
  return prototype === null || Object.getPrototypeOf(prototype) === null
}
