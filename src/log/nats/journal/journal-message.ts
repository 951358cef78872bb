import { isObject } from '../../../protocol/event.ts'
import type { Position, ReaderState } from '../../store/contract.ts'
import type { NewDeadLetter } from '../../store/dead-letter-store.ts'
import type { PreparedEntry } from '../../store/prepared-entry.ts'
import type { ProcessCommit, StateChange, Timer, TimerChange } from '../../store/process-store.ts'
import type { Which } from '../../memory-log/reader-dead-letters.ts'
import type { SavedProcessHead } from '../../memory-log/processes.ts'
import { TextReader, TextWriter } from './framed-texts.ts'

/** Who has claimed a name. */
export interface JournalClaim {
  /** The number of the message that has claimed the name or given it up. It is the token of the fence. */
  readonly token: number
  readonly owner: string
  /** The open log, whose lease says whether it lives. */
  readonly instance: string
  /** Whether it has not given the name up. */
  readonly isHeld: boolean
}

/** What each message of a journal says of the name as a whole, so that the last one alone is enough to know it. */
export interface JournalHead {
  /** The name that is claimed, of a stream or a reader. */
  readonly name: string
  readonly claim: JournalClaim
  /** The upstream position; null for none. */
  readonly position: string | null
  /** How far the reader is; null where it is none. */
  readonly reader: ReaderState | null
  /** Whether retention waits for the process. */
  readonly holdsRetention: boolean
  /** The token of the claim that waits for room; null for none. */
  readonly pausedToken: number | null
  /** Number of dead letters. */
  readonly deadLetters: number
  /** The entries of commits up to this number are in the log. */
  readonly published: number
}

/** A dead letter of a commit. The copy of its entry is a message of its own. */
export type JournalDeadLetter = Pick<NewDeadLetter, 'position' | 'error' | 'attempts' | 'redelivery'> & {
  /** Whether there is a copy of its entry. */
  readonly hasCopy: boolean
}

/** What of a commit is not in the head. */
export interface JournalCommit {
  readonly deadLetters: readonly JournalDeadLetter[]
  readonly redelivered: readonly Position[]
  /** By the clock of the log, in Unix ms. */
  readonly now: number
  readonly process: ProcessCommit | undefined
  readonly entries: readonly PreparedEntry[]
}

/** Where the content of a journal is that was before a message, and is not in its head. */
export interface SnapshotReference {
  /** The last token of the subject of its parts. */
  readonly token: string
  /** Number of parts; 0 where there is no content. */
  readonly parts: number
  readonly bytes: number
  /** The last mark of a dead letter. */
  readonly lastMark: number
  readonly process: SavedProcessHead | null
}

/** A message of a journal. */
export interface JournalMessage {
  readonly head: JournalHead
  readonly commit?: JournalCommit
  /** Dead letters that were marked for another delivery. */
  readonly marked?: Which
  /** Dead letters that were removed. */
  readonly removed?: Which
  /** The reader was removed, and what it keeps as a process. */
  readonly isDropped?: boolean
  /** The earlier messages of the journal are deleted. This is what they were. */
  readonly snapshot?: SnapshotReference
}

/** In a message that claims a name or gives it up: its own number, which is not known before it is stored. */
export const OWN_TOKEN = 0

/** A message as it is published. */
export function encodeMessage({ commit, snapshot, ...rest }: JournalMessage): Uint8Array {
  const texts = new TextWriter()
  return texts.payload({
    ...rest,
    ...(commit && { commit: encodeCommit(commit, texts) }),
    ...(snapshot && { snapshot: encodeSnapshot(snapshot, texts) }),
  })
}

function encodeCommit({ process, entries, ...rest }: JournalCommit, texts: TextWriter) {
  return {
    ...rest,
    process: process && encodeProcess(process, texts),
    entries: entries.map(({ source, id, type, json, completeness, backfill, cause }) => {
      for (const text of [source, id, type, json]) texts.add(text)
      return { completeness, backfill, cause }
    }),
  }
}

function encodeProcess({ memo, state, timers, ...rest }: ProcessCommit, texts: TextWriter) {
  texts.add(memo)
  return {
    ...rest,
    state: state.map((change) => encodeState(change, texts)),
    timers: timers.map((timer) => encodeTimer(timer, texts)),
  }
}

/** 1 where the key has a state, 0 where it is removed. */
export function encodeState({ key, state }: StateChange, texts: TextWriter): number {
  texts.add(key)
  if (state !== null) texts.add(state)
  return Number(state !== null)
}

export function decodeState(hasState: unknown, texts: TextReader): StateChange {
  return { key: texts.next(), state: hasState === 1 ? texts.next() : null }
}

type EncodedTimer = readonly [clock: Timer['clock'], due: number] | null

export function encodeTimer(timer: TimerChange, texts: TextWriter): EncodedTimer {
  texts.add(timer.key)
  texts.add(timer.name)
  if (timer.due === null) return null
  texts.add(timer.cause)
  return [timer.clock, timer.due]
}

export function decodeTimer(encoded: EncodedTimer, texts: TextReader): TimerChange {
  const key = texts.next()
  const name = texts.next()
  if (encoded === null) return { key, name, due: null }
  const [clock, due] = encoded
  return { key, name, clock, due, cause: texts.next() }
}

function encodeSnapshot({ process, ...rest }: SnapshotReference, texts: TextWriter) {
  if (process !== null) texts.add(process.memo)
  return { ...rest, process: process && { ...process, memo: '' } }
}

/** What {@link encodeMessage} makes of a message, as JSON. */
type EncodedMessage = Omit<JournalMessage, 'commit'> & { readonly commit?: ReturnType<typeof encodeCommit> }

/**
 * Reads a message of a journal.
 *
 * @param sequence Its number.
 * @throws {SyntaxError} where it is damaged.
 */
export function decodeMessage(payload: Uint8Array, sequence: number): JournalMessage {
  const texts = new TextReader(payload)
  const encoded = texts.head
  if (!isEncodedMessage(encoded)) throw new SyntaxError('it has no head')
  const { commit, snapshot, head, ...rest } = encoded
  const { claim } = head
  return {
    ...rest,
    head: { ...head, claim: { ...claim, token: claim.token === OWN_TOKEN ? sequence : claim.token } },
    ...(commit && { commit: decodeCommit(commit, texts) }),
    ...(snapshot && { snapshot: decodeSnapshot(snapshot, texts) }),
  }
}

function isEncodedMessage(value: unknown): value is EncodedMessage {
  return isObject(value) && isObject(value['head']) && isObject(value['head']['claim'])
}

function decodeCommit(
  { process, entries, ...rest }: ReturnType<typeof encodeCommit>,
  texts: TextReader,
): JournalCommit {
  return {
    ...rest,
    process: process && {
      ...process,
      memo: texts.next(),
      state: process.state.map((hasState) => decodeState(hasState, texts)),
      timers: process.timers.map((timer) => decodeTimer(timer, texts)),
    },
    entries: entries.map(({ completeness, backfill, cause }) => {
      const [source, id, type, json] = [texts.next(), texts.next(), texts.next(), texts.next()]
      return { source, id, type, json, completeness, backfill, cause }
    }),
  }
}

function decodeSnapshot({ process, ...rest }: SnapshotReference, texts: TextReader): SnapshotReference {
  return { ...rest, process: process && { ...process, memo: texts.next() } }
}
