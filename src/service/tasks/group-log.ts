import type { DatabaseSync } from 'node:sqlite'
import type { TaskGroupStatus } from '../../protocol/task-group.ts'
import type { RunStatus, TaskRun } from '../../protocol/task.ts'
import { prepareArrays } from '../database.ts'
import { batchOf, type EventBatch, NO_EVENTS, sseFrame } from '../../http/server-sent-events.ts'
import { type LogPage, LogPages } from './log-pages.ts'

/** The two streams of a group: of its status and its runs (§4.4), and of its runs alone (§4.5). */
export type GroupStream = 'events' | 'runs'

/** Which events of a stream a client requests, and with which fields. */
export interface LogView {
  /** Only runs that ended with this status. */
  readonly status?: RunStatus | undefined
  readonly includeInput?: boolean
  readonly includeOutput?: boolean
}

/** A page ends with the event that reaches this length, in characters: about what a socket takes at once. */
const PAGE_CHARACTERS = 64 * 1024
/** Maximum number of events of a page. */
const PAGE_EVENTS = 256

/**
 * An append-only log for each stream of each group, from which clients resume. Events are stored as text, and recently
 * read pages are cached as bytes, so that twenty clients of one group cost little more than one.
 */
export class GroupLog {
  readonly #pages = new LogPages()
  readonly #head
  readonly #append
  readonly #read
  readonly #readWithRun

  constructor(database: DatabaseSync) {
    database.exec(`
      CREATE TABLE IF NOT EXISTS task_group_log (
        taskgroup_id TEXT NOT NULL REFERENCES task_groups,
        stream TEXT NOT NULL,
        position INTEGER NOT NULL,
        type TEXT NOT NULL,
        run_id TEXT REFERENCES task_runs (run_id),
        run_status TEXT,
        message TEXT NOT NULL,
        PRIMARY KEY (taskgroup_id, stream, position)
      ) STRICT;
    `)
    this.#head = database.prepare(
      'SELECT coalesce(max(position), 0) AS head FROM task_group_log WHERE taskgroup_id = ? AND stream = ?',
    )
    this.#append = database.prepare(
      `INSERT INTO task_group_log (taskgroup_id, stream, position, type, run_id, run_status, message)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
    )
    const page = `WHERE log.taskgroup_id = ? AND log.stream = ? AND log.position > ?
      AND (?4 IS NULL OR log.run_status = ?4) ORDER BY log.position LIMIT ${PAGE_EVENTS}`
    this.#read = prepareArrays(
      database,
      `SELECT position, type, message, NULL AS input, NULL AS output FROM task_group_log AS log ${page}`,
    )
    this.#readWithRun = prepareArrays(
      database,
      `SELECT log.position, log.type, log.message, run.input, run.output
       FROM task_group_log AS log LEFT JOIN task_runs AS run USING (run_id) ${page}`,
    )
  }

  /** The position of the last event; 0 if there is none. */
  head(groupId: string, stream: GroupStream): number {
    return Number(this.#head.get(groupId, stream)?.['head'] ?? 0)
  }

  /** Appends a change of the group's status. */
  appendStatus(groupId: string, status: TaskGroupStatus): void {
    const position = this.head(groupId, 'events') + 1
    const message = statusMessage(eventId(groupId, 'events', position), status)
    this.#append.run(groupId, 'events', position, 'task_group_status', null, null, message)
  }

  /** Appends the end of a run to both streams. */
  appendRun(groupId: string, run: TaskRun): void {
    for (const stream of ['events', 'runs'] as const) {
      const position = this.head(groupId, stream) + 1
      const message = runMessage(eventId(groupId, stream, position), run)
      this.#append.run(groupId, stream, position, 'task_run.state', run.run_id, run.status, message)
    }
  }

  /** The status of a group without events, as an event at position 0 that is not in the log. */
  beginning(groupId: string, status: TaskGroupStatus): EventBatch {
    const id = eventId(groupId, 'events', 0)
    return batchOf([sseFrame({ id, event: 'task_group_status', data: statusMessage(id, status) })])
  }

  /**
   * Reads a page of events after a position. An empty page is the current end of the log. Its position is the position of the last event,
   * even if the view excludes that event: the next read then need not skip the same events again.
   */
  read(groupId: string, stream: GroupStream, after: number, view: LogView = {}): LogPage {
    const { status = null, includeInput = false, includeOutput = false } = view
    const key = `${eventId(groupId, stream, after)} ${status} ${includeInput} ${includeOutput}`
    const cached = this.#pages.get(key)
    if (cached !== undefined) return cached

    const frames: string[] = []
    let position = after
    let characters = 0
    const isFull = () => frames.length === PAGE_EVENTS || characters >= PAGE_CHARACTERS
    const statement = includeInput || includeOutput ? this.#readWithRun : this.#read
    for (const row of statement.iterate(groupId, stream, after, status)) {
      const { 0: at, 1: type, 2: text, 3: input, 4: output } = row
      position = Number(at)
      // Inserts members into the text: parsing and serializing it would cost more than everything else.
      let message = String(text)
      if (includeInput && input !== null) message = withMember(message, 'input', input)
      if (includeOutput && output !== null) message = withMember(message, 'output', output)
      const framed = sseFrame({
        id: eventId(groupId, stream, position),
        event: String(type),
        data: message,
      })
      frames.push(framed)
      characters += framed.length
      if (isFull()) break
    }
    if (frames.length === 0) return { events: NO_EVENTS, position: this.head(groupId, stream) }
    const page = { events: batchOf(frames), position }
    // The log is append-only, so a full page never changes.
    if (isFull()) this.#pages.add(key, page)
    return page
  }

  /** The position of an event's id; 0 for an empty id, undefined for an id that this stream never sent. */
  position(groupId: string, stream: GroupStream, id: string): number | undefined {
    if (id === '') return 0
    const prefix = eventId(groupId, stream, '')
    const position = id.slice(prefix.length)
    const known = id.startsWith(prefix) && /^(0|[1-9]\d{0,14})$/.test(position)
    return known && Number(position) <= this.head(groupId, stream) ? Number(position) : undefined
  }

  /** The id of the last event; the id of position 0 if there is none. */
  cursor(groupId: string, stream: GroupStream): string {
    return eventId(groupId, stream, this.head(groupId, stream))
  }
}

/** Unique over all events of all groups and streams. */
function eventId(groupId: string, stream: GroupStream, position: number | ''): string {
  return `${groupId}:${stream}:${position}`
}

/** The JSON of a status event (§4.4). */
function statusMessage(event_id: string, status: TaskGroupStatus): string {
  return JSON.stringify({ type: 'task_group_status', event_id, status })
}

/** The JSON of a run event (§4.5), without warnings and error if they are null. */
function runMessage(event_id: string, { warnings, error, ...run }: TaskRun): string {
  const shown = { ...run, ...(warnings != null && { warnings }), ...(error != null && { error }) }
  return JSON.stringify({ type: 'task_run.state', event_id, run: shown })
}

/** Adds a member to a JSON object; both the object and the value are JSON text. */
function withMember(object: string, name: string, json: unknown): string {
  return `${object.slice(0, -1)},"${name}":${String(json)}}`
}
