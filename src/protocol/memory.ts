/* Shapes of memories. All of this file is beyond the interface document. */

/** Every kind of memory, by what made it. */
export const MEMORY_KINDS = ['task', 'monitor', 'findall'] as const

/** The kind of work that made a memory: a task run, a monitor or a FindAll run. */
export type MemoryKind = (typeof MEMORY_KINDS)[number]

/** Names a memory scope in requests. */
export interface MemoryScope {
  /** The scope, isolated from all others, of at most 512 characters. Absent or null: the personal memory. */
  readonly memory_scope_key?: string | null
}

/** The body of `POST /v1beta/memory/retrieve`. */
export interface MemoryRetrieveRequest extends MemoryScope {
  /** The topic of the memories. Absent, null or empty: the most recent ones. */
  readonly query?: string | null
  /** Only memories of this kind. Default: memories of each kind. */
  readonly kind?: MemoryKind | null
  /** The maximum number of memories. Default: the service's. */
  readonly limit?: number
  /** Only memories of work that completed at this time or later, in RFC 3339. Default: of any time. */
  readonly since?: string | null
}

/** The body of `POST /v1beta/memory/evict`. */
export interface MemoryEvictRequest extends MemoryScope {
  /** The id of the task run, monitor or FindAll run. */
  readonly id: string
  readonly kind: MemoryKind
}

interface MemoryBase<Kind extends string> {
  readonly kind: Kind
  /** The id of what made the memory. */
  readonly id: string
  /** The beginning of the input, the query or the objective. */
  readonly input_excerpt: string
  /** When the run ended, or when the monitor last ran, in RFC 3339. */
  readonly updated_at: string
}

/** A memory of a completed task run. */
export interface TaskMemory extends MemoryBase<'task'> {
  /** The beginning of the output. */
  readonly output_excerpt: string
}

/** An event that a monitor has detected. */
export interface MonitorMemoryEvent {
  readonly event_id: string
  /** The execution that found it. */
  readonly event_group_id: string
  /** When it was detected, in RFC 3339. */
  readonly detected_at: string
  readonly excerpt: string
}

/** A memory of a monitor. */
export interface MonitorMemory extends MemoryBase<'monitor'> {
  readonly status: 'active' | 'cancelled' | (string & {})
  /** The events that match the query, best first; without a query the most recent ones. */
  readonly matched_events?: readonly MonitorMemoryEvent[] | null
}

/** A memory of a FindAll run. */
export interface FindAllMemory extends MemoryBase<'findall'> {
  readonly matched_count: number
}

/** A memory, discriminated by `kind`. */
export type Memory = TaskMemory | MonitorMemory | FindAllMemory

/** A memory of a kind that this version does not know, or without a field of its kind. `data` is the value that the service sent. */
export interface UnknownMemory {
  readonly kind: 'unknown'
  readonly data: unknown
}

/** The response of `POST /v1beta/memory/retrieve`, best results first. */
export interface MemoryRetrieveResponse<Result = Memory> {
  readonly results: readonly Result[]
}
