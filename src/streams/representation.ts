import { errorText } from '../protocol/error-text.ts'
import { eventJson, tooDeep } from '../protocol/event-json.ts'
import type { ResearchEvent } from '../protocol/event.ts'
import { RefusedEffect } from './effects.ts'
import type { Representation } from './effects.ts'
import { notJson } from './not-json.ts'
import { MAX_EFFECT_BYTES, OVERHEAD, stateBytes, utf8Length } from './sizes.ts'

/** A representation of states as JSON, with one of events. */
export function asJson<State, Output>(
  output: Representation<State, string, Output>['output'],
): Representation<State, string, Output> {
  return {
    stored: storedJson,
    state: (json) => JSON.parse(json),
    initial: (state) => (state === null ? state : JSON.parse(jsonOf(state))),
    output,
    stateBytes: (key, state) => stateBytes({ key, state }),
    maxEffectBytes: MAX_EFFECT_BYTES,
  }
}

/** States and events as a log keeps them, without a log. */
export function asInLog<State>(): Representation<State, string, ResearchEvent> {
  return asJson(eventOfJson)
}

/**
 * States and events as they are: fast, if functions keep to it that an event is not changed after it was appended, and that a state is set which
 * was changed.
 *
 * @param isOutput Whether it is an event that the functions may append.
 */
export function asGiven<State, Output extends ResearchEvent>(
  isOutput: (event: ResearchEvent) => event is Output,
): Representation<State, State, Output> {
  return {
    stored: (state) => state,
    state: (state) => state,
    initial: (state) => state,
    output: (event) => (isOutput(event) ? { output: event, bytes: 0 } : undefined),
    stateBytes: () => 0,
    maxEffectBytes: Infinity,
  }
}

/** @throws {RefusedEffect} for a value that is not JSON, or is larger. */
function storedJson(state: unknown, maxBytes: number): string {
  const json = jsonOf(state)
  if (json.length * 3 <= maxBytes) return json
  const bytes = utf8Length(json)
  if (bytes <= maxBytes) return json
  throw new RefusedEffect(`its state of ${bytes} bytes is over the limit of ${maxBytes} (maxStateBytes)`)
}

/** @throws {RefusedEffect} for a value that JSON does not give back as it is. */
export function jsonOf(state: unknown): string {
  let json: string | undefined
  let problem: string | undefined
  try {
    json = JSON.stringify(state)
  } catch (error) {
    problem = errorText(error)
  }
  try {
    // JSON.stringify has gone the same way, so this is not longer.
    problem = notJson('state', state) ?? problem
  } catch (error) {
    problem ??= errorText(error)
  }
  if (json !== undefined && problem === undefined) return json
  throw new RefusedEffect(`its state is not JSON: ${problem ?? 'it has no text'}`)
}

/** The event as a log gives it back. */
function eventOfJson(
  event: ResearchEvent,
): { readonly output: ResearchEvent; readonly bytes: number } | undefined {
  let json: string
  try {
    json = eventJson(event)
  } catch (error) {
    return error instanceof RangeError ? eventOfJson(tooDeep(event)) : undefined
  }
  return { output: JSON.parse(json), bytes: OVERHEAD + utf8Length(json) }
}
