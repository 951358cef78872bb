import { eventJson, tooDeep } from '../protocol/event-json.ts'
import type { ResearchEvent } from '../protocol/event.ts'
import type { Representation } from './effects.ts'
import { MAX_EFFECT_BYTES, OVERHEAD, stateBytes, utf8Length } from './sizes.ts'
import { jsonOf, storedJson } from './stored-json.ts'

/** A representation of states as JSON, with one of events. */
export function asJson<State, Output>(
  output: Representation<State, string, Output>['output'],
): Representation<State, string, Output> {
  return {
    stored: (state, maxBytes) => storedJson(state, maxBytes, 'state'),
    state: (json) => JSON.parse(json),
    initial: (state) => (state === null ? state : JSON.parse(jsonOf(state, 'state'))),
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

/** States as they are, and events as a log keeps them: for functions that leave their arguments as they are. */
export function asComputed<State>(): Representation<State, State, ResearchEvent> {
  return { ...asGiven<State, ResearchEvent>((_event): _event is ResearchEvent => true), output: eventOfJson }
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
