import { cutText } from '../../protocol/cut-text.ts'
import { isObject } from '../../protocol/json.ts'
import type { RuleContext } from './context.ts'
import type { RuleInput } from './event-time.ts'
import { hashOf } from './key.ts'
import type { MatchedEvent, RuleState } from './state.ts'

/** Maximum length of the source and of the id in the name of a timer, in characters. */
const MAX_TEXT = 490

/**
 * An event that waits until none can come before it: the results of its conditions, so that the event itself need not be kept. It is the data
 * of a timer, since each of many events of a key waits by itself.
 */
interface HeldEvent {
  /** The `key` of its state, which may be gone when the timer fires. */
  readonly key: NonNullable<RuleState['key']>
  readonly event: MatchedEvent
}

/** Starts the timer of an event. */
export function holdEvent(entry: RuleInput, held: HeldEvent, due: number, context: RuleContext): void {
  context.timer(heldName(entry), due, { clock: 'event', data: held })
}

/** The event whose timer has this data; undefined for another timer. */
export function heldEvent(data: unknown): HeldEvent | undefined {
  return isHeldEvent(data) ? data : undefined
}

function isHeldEvent(data: unknown): data is HeldEvent {
  return isObject(data) && isObject(data['key']) && isObject(data['event'])
}

/**
 * The name of a timer: another one for each event and revision. Timers that are due at one time fire in the order of their names: by source,
 * then id, and before `TIMER`, whose deadlines are later than these events.
 */
function heldName({ source, id, revision = 1 }: RuleInput): string {
  const texts = [source, id].map((text) => cutText(text, MAX_TEXT))
  return ['at', ...texts, hashOf(JSON.stringify([source, id, revision]))].join('\t')
}
