import type { DatabaseSync } from 'node:sqlite'
import type { FindAllCandidate, FindAllRun, FindAllSchema } from '../../protocol/find-all.ts'
import { batchOf, type EventBatch, NO_EVENTS, sseFrame } from '../../http/server-sent-events.ts'
import { prepareArrays } from '../database.ts'
import type { LogPage } from '../tasks/log-pages.ts'

/** A page ends with the event that reaches this length, in characters: about what a socket takes at once. */
const PAGE_CHARACTERS = 64 * 1024
/** Maximum number of events of a page. */
const PAGE_EVENTS = 256

/** An append-only log of the events of each FindAll run, from which clients resume. Events are stored as text. */
export class FindAllLog {
  readonly #head
  readonly #append
  readonly #read

  constructor(database: DatabaseSync) {
    database.exec(`
      CREATE TABLE IF NOT EXISTS find_all_log (
        findall_id TEXT NOT NULL REFERENCES find_all_runs (findall_id),
        position INTEGER NOT NULL,
        type TEXT NOT NULL,
        message TEXT NOT NULL,
        PRIMARY KEY (findall_id, position)
      ) STRICT;
    `)
    this.#head = database.prepare(
      'SELECT coalesce(max(position), 0) AS head FROM find_all_log WHERE findall_id = ?',
    )
    this.#append = database.prepare('INSERT INTO find_all_log VALUES (?, ?, ?, ?)')
    this.#read = prepareArrays(
      database,
      `SELECT position, type, message FROM find_all_log WHERE findall_id = ? AND position > ?
       ORDER BY position LIMIT ${PAGE_EVENTS}`,
    )
  }

  /** Appends an event, in the transaction of the caller. */
  append(
    id: string,
    type: string,
    timestamp: string,
    data: FindAllRun | FindAllCandidate | FindAllSchema,
  ): void {
    const position = this.#position(id) + 1
    const message = { type, event_id: eventId(id, position), timestamp, data }
    this.#append.run(id, position, type, JSON.stringify(message))
  }

  /** Reads a page of events after a position. An empty page is the current end of the log. */
  read(id: string, after: number): LogPage {
    const frames: string[] = []
    let position = after
    let characters = 0
    for (const { 0: at, 1: type, 2: message } of this.#read.iterate(id, after)) {
      position = Number(at)
      const framed = sseFrame({
        id: eventId(id, position),
        event: String(type),
        data: String(message),
      })
      frames.push(framed)
      characters += framed.length
      if (characters >= PAGE_CHARACTERS) break
    }
    return { events: frames.length === 0 ? NO_EVENTS : batchOf(frames), position }
  }

  /** The status of a run as an event that is not in the log, with the id of the event at a position. */
  status(run: FindAllRun, position: number, timestamp: string): EventBatch {
    const id = eventId(run.findall_id, position)
    const message = { type: 'findall.status', event_id: id, timestamp, data: run }
    return batchOf([sseFrame({ id, event: message.type, data: JSON.stringify(message) })])
  }

  /** The position of an event's id; 0 for an empty id, undefined for an id that this stream never sent. */
  position(id: string, lastEventId: string): number | undefined {
    if (lastEventId === '') return 0
    const prefix = eventId(id, '')
    const position = lastEventId.slice(prefix.length)
    const known = lastEventId.startsWith(prefix) && /^(0|[1-9]\d{0,14})$/.test(position)
    return known && Number(position) <= this.#position(id) ? Number(position) : undefined
  }

  /** The id of the last event. */
  cursor(id: string): string {
    return eventId(id, this.#position(id))
  }

  #position(id: string): number {
    return Number(this.#head.get(id)?.['head'] ?? 0)
  }
}

/** Unique over all events of all runs. */
function eventId(id: string, position: number | ''): string {
  return `${id}:${position}`
}
