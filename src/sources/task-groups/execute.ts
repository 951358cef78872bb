import { Observable, Subscription } from 'rxjs'
import type { Subscriber } from 'rxjs'
import { metadataOfRetry } from '../../protocol/attempt.ts'
import { currentGate, Gate, withGate } from '../../protocol/gate.ts'
import { checkInteger, checkOptions } from '../../protocol/check.ts'
import { groupSource } from '../../protocol/event.ts'
import type { ResearchEvent, TaskRunState } from '../../protocol/event.ts'
import type { TaskOutput } from '../../protocol/output.ts'
import type { AddRunsRequest } from '../../protocol/task-group.ts'
import type { RunInput, TaskRun } from '../../protocol/task.ts'
import type { AnswerSchema } from '../../protocol/standard-schema.ts'
import { ProtocolError, RequestError, ValidationError } from '../../transport/errors.ts'
import { ADD_RUNS_OPTIONS, prepareRuns } from './add-runs.ts'
import type { AddRunsOptions } from './add-runs.ts'
import { checkedOutput, MAX_CHECKS, outputSchema, OutputSchemaError } from '../shapes/answer-schema.ts'
import type { CheckedOutput } from '../shapes/answer-schema.ts'
import type { Context } from '../context.ts'
import { groupRuns } from './runs.ts'
import { sourceOf } from '../shapes/source.ts'
import type { Source } from '../shapes/source.ts'
import { writeRuns } from './write-runs.ts'
import type { AddedBatch, Entry, RunsToWrite } from './write-runs.ts'

/** Options of `taskGroups.execute`. */
export interface ExecuteOptions extends AddRunsOptions {
  /** The most retries of an input whose run failed. Cancelled runs are not retried. Default 0. */
  readonly retryFailed?: number
}

/** Options of `taskGroups.execute` with a schema for the outputs. */
interface TypedExecuteOptions<Content> extends ExecuteOptions {
  /**
   * The schema of every output: one that converts to JSON Schema, such as zod's, or any Standard Schema together with its JSON
   * Schema, `{ schema, jsonSchema }`. It is sent as each run's `task_spec.output_schema`, and validates each output.
   */
  readonly schema: AnswerSchema<Content>
}

/** An input with its ended run. */
export interface ExecutedRun<Output extends object = TaskOutput> {
  /** The index in the caller's `inputs`. */
  readonly index: number
  readonly input: RunInput
  /** The run that ended: `completed`, `failed` or `cancelled`. */
  readonly run: TaskRun
  /** The output; null unless the run completed with an output that matches the schema. */
  readonly output: Output | null
  /** Set if the output of a completed run does not match the schema. The error has the output as received. */
  readonly misfit?: OutputSchemaError
}

/** A run of `taskGroups.execute` that did not complete, or whose output does not match the schema. */
type UnfinishedRun = Omit<ExecutedRun, 'output'>

/** All runs of an execution ended and were emitted, but some failed, were cancelled or do not match the schema. */
export class ExecutionError extends RequestError {
  override readonly name = 'ExecutionError'
  override readonly code = 'execution'
  /** The unfinished runs, in the order of the caller's `inputs`. */
  readonly runs: readonly UnfinishedRun[]

  constructor(groupId: string, runs: readonly UnfinishedRun[], total: number) {
    const [first] = runs
    const example = first === undefined ? '' : `: inputs[${first.index}] ${outcome(first)}`
    const request = { method: 'POST', path: `${groupSource(groupId)}/runs` }
    super(`${runs.length} of ${total} runs did not complete${example}; \`runs\` has them all`, request)
    this.runs = runs
  }
}

/** The number of buffered early runs at which the runs stream is paused. */
const MAX_EARLY = 1_000

/** How many times in a row the runs stream may complete without an awaited run. The last read starts at the beginning. */
const MAX_IDLE_READS = 3

/** `taskGroups.execute`. Its overloads are declared here since an inferred type has no comments for them. */
export interface ExecuteRuns {
  /** Adds any number of runs and emits each with its input and output as it ends (§4.3, §4.5). */
  (
    groupId: string,
    inputs: readonly RunInput[] | AddRunsRequest,
    options?: ExecuteOptions,
  ): Source<ExecutedRun>
  /** The same with a schema for the answers: it is sent, outputs are checked, and `output.content` has its type. */
  <Content>(
    groupId: string,
    inputs: readonly RunInput[] | AddRunsRequest,
    options: TypedExecuteOptions<Content>,
  ): Source<ExecutedRun<CheckedOutput<Content>>>
}

/**
 * Creates `taskGroups.execute`, which adds runs as `taskGroups.addRuns` does and emits each input with its run and output when
 * the run ends, also while later batches are being added. Other runs of the group are ignored. Runs are emitted in the order of
 * ending; one that ended before the response to its own request is emitted after the response.
 *
 * Completes when every input was emitted. A run that was cancelled or failed after `retryFailed` retries is emitted like the
 * others; after the last one, the execution errors with an {@link ExecutionError} that lists them. An error of adding errors
 * the result immediately; runs that were added continue at the service.
 *
 * With a `schema`, an output that does not match is emitted as `output: null` with its `misfit`, and the run counts as not
 * completed. It is not retried, since it costs money and may have the same result. An asynchronous schema delays the emission.
 */
export function createExecute(context: Context): ExecuteRuns {
  function execute(
    groupId: string,
    inputs: readonly RunInput[] | AddRunsRequest,
    options?: ExecuteOptions,
  ): Source<ExecutedRun>
  function execute<Content>(
    groupId: string,
    inputs: readonly RunInput[] | AddRunsRequest,
    options: TypedExecuteOptions<Content>,
  ): Source<ExecutedRun<CheckedOutput<Content>>>
  function execute(
    groupId: string,
    inputs: readonly RunInput[] | AddRunsRequest,
    options: ExecuteOptions & { readonly schema?: AnswerSchema<unknown> } = {},
  ): Source<ExecutedRun<object>> {
    checkOptions('taskGroups.execute', options, [...ADD_RUNS_OPTIONS, 'retryFailed', 'schema'])
    const { retryFailed = 0, schema, ...writeOptions } = options
    checkInteger('retryFailed', retryFailed, 0)
    const sent = schema === undefined ? undefined : outputSchema(schema)
    const runs = prepareRuns(context, groupId, isList(inputs) ? { inputs } : inputs, {
      ...writeOptions,
      outputSchema: sent,
    })
    const check: Check = schema === undefined ? (output) => output : (output) => checkedOutput(schema, output)
    const execution = new Observable<ExecutedRun<object>>((subscriber) =>
      new Execution(context, runs, { retryFailed, check }, subscriber).start(),
    )
    return sourceOf(execution, options.signal)
  }
  return execute
}

/** Validates an output. */
type Check = (output: TaskOutput | null) => CheckedValue | Promise<CheckedValue>
type CheckedValue = object | null

/** Settings of an execution. */
interface ExecutionSettings {
  readonly retryFailed: number
  readonly check: Check
}

/** One subscription of `taskGroups.execute`. */
class Execution {
  readonly #context: Context
  readonly #runs: RunsToWrite
  readonly #settings: ExecutionSettings
  readonly #subscriber: Subscriber<ExecutedRun<object>>
  readonly #subscriptions = new Subscription()
  /** Runs that were added and have not ended, by their id. */
  readonly #running = new Map<string, Entry>()
  /** Ended runs that may belong to the request in flight, or to another caller. */
  readonly #early = new Map<string, TaskRunState>()
  readonly #unfinished: UnfinishedRun[] = []
  /** Number of retries of each input, by index. */
  readonly #retries = new Map<number, number>()
  /** Inputs that wait for a retry. */
  #retryQueue: Entry[] = []
  #adding = false
  #remaining: number
  /** The gate of the subscriber, and the gate of the runs stream. */
  readonly #downstream = currentGate()
  readonly #gate = new Gate()
  #reading: Subscription | undefined
  /** The cursor to resume from; empty for the beginning, undefined before the first response. */
  #cursor: string | undefined
  /** Completed reads in a row without an awaited run. */
  #idleReads = 0
  /** Number of pending asynchronous checks. */
  #checks = 0

  constructor(
    context: Context,
    runs: RunsToWrite,
    settings: ExecutionSettings,
    subscriber: Subscriber<ExecutedRun<object>>,
  ) {
    this.#context = context
    this.#runs = runs
    this.#settings = settings
    this.#subscriber = subscriber
    this.#remaining = runs.entries.length
  }

  start(): Subscription {
    this.#subscriptions.add(this.#downstream?.onChange(() => this.#updateGate()))
    this.#updateGate()
    this.#add(this.#runs.entries)
    return this.#subscriptions
  }

  #add(entries: readonly Entry[]): void {
    this.#adding = true
    const writing = writeRuns(this.#context, { ...this.#runs, entries }).subscribe({
      next: (batch) => this.#guard(() => this.#onAdded(batch)),
      error: (error: unknown) => this.#subscriber.error(error),
      complete: () =>
        this.#guard(() => {
          this.#adding = false
          this.#retry()
        }),
    })
    this.#subscriptions.add(writing)
  }

  #onAdded({ entries, response }: AddedBatch): void {
    // The runs of later batches come after those of the first one.
    this.#cursor ??= validCursor(response.run_cursor)
    for (const [position, runId] of response.run_ids.entries()) {
      const entry = entries[position]
      if (entry !== undefined) this.#running.set(runId, entry)
    }
    // The others belong to other callers, since the next request is sent only after this.
    const early = [...this.#early.values()]
    this.#early.clear()
    this.#updateGate()
    for (const state of early) this.#onRunEnd(state)
    this.#read()
  }

  /** Subscribes to the runs stream while runs are awaited. */
  #read(): void {
    if (this.#reading !== undefined || this.#running.size === 0 || this.#subscriptions.closed) return
    const query = { include_output: true, ...(this.#cursor !== undefined && { last_event_id: this.#cursor }) }
    const runs = groupRuns(this.#context, this.#runs.groupId, query)
    const reading = new Subscription()
    this.#reading = reading
    this.#subscriptions.add(reading)
    const stop = () => {
      reading.unsubscribe()
      this.#reading = undefined
    }
    const subscribe = () =>
      runs.subscribe({
        next: (event) => this.#guard(() => this.#onEvent(event)),
        error: (error: unknown) => {
          stop()
          this.#guard(() => this.#onStreamError(error))
        },
        complete: () => {
          stop()
          this.#guard(() => this.#onStreamComplete())
        },
      })
    reading.add(withGate(this.#gate, subscribe))
  }

  #onEvent(event: ResearchEvent): void {
    if (event.cursor !== undefined) this.#cursor = validCursor(event.cursor)
    if (event.type !== 'task_run.state' || event.data.run.is_active) return
    if (this.#running.has(event.data.run.run_id)) {
      this.#onRunEnd(event.data)
    } else if (this.#adding) {
      this.#early.set(event.data.run.run_id, event.data)
      this.#updateGate()
    }
  }

  #onRunEnd(state: TaskRunState): void {
    const { run, output = null } = state
    const entry = this.#running.get(run.run_id)
    if (entry === undefined) return
    this.#running.delete(run.run_id)
    this.#idleReads = 0

    const retries = this.#retries.get(entry.index) ?? 0
    if (run.status === 'failed' && retries < this.#settings.retryFailed) {
      this.#retries.set(entry.index, retries + 1)
      this.#retryQueue.push({
        ...entry,
        attempt: metadataOfRetry({ run, input: { ...entry.input, metadata: entry.attempt } }),
      })
      return this.#retry()
    }
    if (run.status !== 'completed') return this.#emit(entry, run, null)
    const checked = this.#settings.check(output)
    if (!(checked instanceof Promise)) return this.#emit(entry, run, checked)
    this.#checks += 1
    this.#updateGate()
    // Never rejects: a schema that throws counts as a misfit.
    void checked.then((result) =>
      this.#guard(() => {
        this.#checks -= 1
        this.#emit(entry, run, result)
        this.#updateGate()
      }),
    )
  }

  #emit({ index, input }: Entry, run: TaskRun, checked: CheckedValue): void {
    if (this.#subscriber.closed) return
    this.#remaining -= 1
    const ended = { index, input, run }
    const result = checked instanceof OutputSchemaError ? { ...ended, misfit: checked } : ended
    if (run.status !== 'completed' || checked instanceof OutputSchemaError) this.#unfinished.push(result)
    this.#subscriber.next({ ...result, output: checked instanceof OutputSchemaError ? null : checked })
    if (this.#remaining === 0) this.#finish()
  }

  /** Adds all inputs of the retry queue, unless a request is in flight. */
  #retry(): void {
    if (this.#adding || this.#retryQueue.length === 0 || this.#subscriptions.closed) return
    const entries = this.#retryQueue
    this.#retryQueue = []
    this.#add(entries)
  }

  #finish(): void {
    if (this.#unfinished.length === 0) return this.#subscriber.complete()
    const runs = this.#unfinished.toSorted((one, other) => one.index - other.index)
    this.#subscriber.error(new ExecutionError(this.#runs.groupId, runs, this.#runs.entries.length))
  }

  /** The stream also completes while the group is idle before the next batch. It must not while a run is awaited. */
  #onStreamComplete(): void {
    if (this.#running.size === 0) return
    this.#idleReads += 1
    if (this.#idleReads < MAX_IDLE_READS) {
      if (this.#idleReads === MAX_IDLE_READS - 1) this.#cursor = ''
      return this.#read()
    }
    const request = { method: 'GET', path: `${groupSource(this.#runs.groupId)}/runs` }
    const missing = `the stream completed without ${this.#running.size} of the added runs`
    this.#subscriber.error(new ProtocolError(missing, request, { retryable: false }))
  }

  #onStreamError(error: unknown): void {
    if (!(error instanceof ValidationError) || !this.#cursor) return this.#subscriber.error(error)
    // The service no longer knows the position. Runs that it sends again are ignored.
    this.#cursor = ''
    this.#read()
  }

  /** Passes what a step throws to the subscriber. RxJS would rethrow it asynchronously, where nothing can catch it. */
  #guard(step: () => void): void {
    try {
      step()
    } catch (thrown) {
      this.#subscriber.error(thrown)
    }
  }

  /** Pauses the runs stream while the subscriber is paused, or too many runs are buffered or being checked. */
  #updateGate(): void {
    const isFull = this.#early.size >= MAX_EARLY || this.#checks >= MAX_CHECKS
    if (this.#downstream?.closed === true || isFull) this.#gate.close()
    else this.#gate.open()
  }
}

function isList(inputs: readonly RunInput[] | AddRunsRequest): inputs is readonly RunInput[] {
  return Array.isArray(inputs)
}

/** An invalid cursor becomes the empty one: the stream is read from its beginning. */
function validCursor(cursor: unknown): string {
  return typeof cursor === 'string' && cursor.trim() !== '' ? cursor : ''
}

function outcome({ run: { status, error }, misfit }: UnfinishedRun): string {
  if (misfit !== undefined) return `(${misfit.message})`
  const message = typeof error?.message === 'string' ? ` (${error.message})` : ''
  return status === 'cancelled' ? 'was cancelled' : `${status}${message}`
}
