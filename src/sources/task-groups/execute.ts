import { Observable, Subscription } from 'rxjs'
import type { Subscriber } from 'rxjs'
import { currentGate, Gate, withGate } from '../../protocol/gate.ts'
import { checkInteger, checkOptions } from '../../protocol/check.ts'
import { groupSource } from '../../protocol/event.ts'
import type { ResearchEvent, TaskRunState } from '../../protocol/event.ts'
import type { TaskOutput } from '../../protocol/output.ts'
import type { AddRunsRequest } from '../../protocol/task-group.ts'
import type { RunInput, TaskRun } from '../../protocol/task.ts'
import type { AnswerSchema } from '../../protocol/standard-schema.ts'
import { ProtocolError, RivuletError, ValidationError } from '../../transport/errors.ts'
import { ADD_RUNS_OPTIONS, readRuns } from './add-runs.ts'
import type { AddRunsOptions } from './add-runs.ts'
import { checkedOutput, MAX_CHECKS, outputSchema, OutputSchemaError } from './answer-schema.ts'
import type { CheckedOutput } from './answer-schema.ts'
import type { Context } from '../context.ts'
import { groupRuns } from './runs.ts'
import { reportRunAhead } from '../shapes/run-ahead.ts'
import { sourceOf } from '../shapes/source.ts'
import type { Source } from '../shapes/source.ts'
import { writeRuns } from './write-runs.ts'
import type { AddedBatch, Entry, RunsToWrite } from './write-runs.ts'

/** Options of `taskGroups.execute`. */
export interface ExecuteOptions extends AddRunsOptions {
  /** How often an input is added again when its run failed, at the most. A cancelled run is not. Default 0. */
  readonly retryFailed?: number
}

/** Options of `taskGroups.execute` with answers that follow a schema. */
export interface TypedExecuteOptions<Content> extends ExecuteOptions {
  /**
   * What every run shall answer with: a schema that can say itself as JSON Schema, as zod's can, or any Standard Schema with
   * its JSON Schema beside it, `{ schema, jsonSchema }`. It is sent as each run's `task_spec.output_schema`, and what comes
   * is checked with it.
   */
  readonly schema: AnswerSchema<Content>
}

/** `taskGroups.execute`. */
export interface Execute {
  (
    groupId: string,
    inputs: readonly RunInput[] | AddRunsRequest,
    options?: ExecuteOptions,
  ): Source<ExecutedRun>
  <Content>(
    groupId: string,
    inputs: readonly RunInput[] | AddRunsRequest,
    options: TypedExecuteOptions<Content>,
  ): Source<ExecutedRun<CheckedOutput<Content>>>
}

/** What became of one input. */
export interface ExecutedRun<Output extends object = TaskOutput> {
  /** Where the input stands in the caller's `inputs`. */
  readonly index: number
  readonly input: RunInput
  /** The run that ended: `completed`, `failed` or `cancelled`. */
  readonly run: TaskRun
  /** What it found; null unless it completed with an output that fits the schema. */
  readonly output: Output | null
  /** Why the output of a run that completed is null: it does not fit the schema. The error has the output as it came. */
  readonly misfit?: OutputSchemaError
}

/** A run of `taskGroups.execute` that did not complete, or whose output does not fit the schema. */
export type UnfinishedRun = Omit<ExecutedRun, 'output'>

/** All runs of an execution ended, and were emitted, but some failed, were cancelled or do not fit the schema. */
export class ExecutionError extends RivuletError {
  override readonly name = 'ExecutionError'
  readonly retryable = false
  /** Those that did not complete, in the order of the caller's `inputs`. */
  readonly runs: readonly UnfinishedRun[]

  constructor(groupId: string, runs: readonly UnfinishedRun[], total: number) {
    const [first] = runs
    const example = first === undefined ? '' : `: inputs[${first.index}] ${outcome(first)}`
    const request = { method: 'POST', path: `${groupSource(groupId)}/runs` }
    super(`${runs.length} of ${total} runs did not complete${example}`, request)
    this.runs = runs
  }
}

/** Runs that may be put by while a request is under way whose answer may name them. */
const MAX_EARLY = 1_000

/** Readings of the runs stream in a row that may end before all was told. The last begins at the beginning. */
const MAX_FRUITLESS = 3

/**
 * Adds runs to a group as `taskGroups.addRuns` does, and emits each input with its run and output as the run ends; other
 * runs of the group do not matter. Results come while later batches are still being added. A run that ended before the
 * answer to its own request came is emitted with the answer, all others in the order of ending.
 *
 * Completes when every input was emitted. Where a run failed, `retryFailed` times over, or was cancelled, it is emitted
 * like the others, and once all were, the execution errors with an {@link ExecutionError} that lists them. An error of
 * adding ends it at once; the runs that were added go on at the service.
 *
 * With a `schema`, a run that completed with another output is emitted with `output: null` and its `misfit`, and counts as
 * one that did not complete. It is not added again, since it was paid for and may come out the same way. A schema that
 * checks asynchronously delays the emission of a run until it has checked.
 */
export function executing(context: Context): Execute {
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
    const { retryFailed = 0, schema, ...adding } = options
    checkInteger('retryFailed', retryFailed, 0)
    const asked = schema === undefined ? undefined : outputSchema(schema)
    const runs = readRuns(context, groupId, isList(inputs) ? { inputs } : inputs, adding, asked)
    const check: Check = schema === undefined ? (output) => output : (output) => checkedOutput(schema, output)
    const execution = new Observable<ExecutedRun<object>>((subscriber) =>
      new Execution(context, runs, { retryFailed, check }, subscriber).start(),
    )
    return reportRunAhead(context, sourceOf(execution, options.signal), groupSource(groupId))
  }
  return execute
}

/** What becomes of an output. */
type Check = (output: TaskOutput | null) => Checked | Promise<Checked>
type Checked = object | null

/** How often what failed is added again, and how outputs are checked. */
interface Terms {
  readonly retryFailed: number
  readonly check: Check
}

/** One execution under way. */
class Execution {
  readonly #context: Context
  readonly #runs: RunsToWrite
  readonly #terms: Terms
  readonly #subscriber: Subscriber<ExecutedRun<object>>
  readonly #all = new Subscription()
  /** Runs that were added and have not ended, by their id. */
  readonly #running = new Map<string, Entry>()
  /** Runs that ended and that no answer has named yet: of a request under way, or somebody else's. */
  readonly #early = new Map<string, TaskRunState>()
  readonly #unfinished: UnfinishedRun[] = []
  /** How often each input was added again, by its index. */
  readonly #retries = new Map<number, number>()
  /** Inputs that wait to be added again. */
  #again: Entry[] = []
  #adding = false
  #left: number
  /** The consumer's gate, and the one that the runs stream is read through. */
  readonly #outer = currentGate()
  readonly #gate = new Gate()
  #reading: Subscription | undefined
  /** Where to go on reading; empty for the beginning, undefined before the first answer. */
  #cursor: string | undefined
  #fruitless = 0
  /** Outputs under an asynchronous check. */
  #checks = 0

  constructor(
    context: Context,
    runs: RunsToWrite,
    terms: Terms,
    subscriber: Subscriber<ExecutedRun<object>>,
  ) {
    this.#context = context
    this.#runs = runs
    this.#terms = terms
    this.#subscriber = subscriber
    this.#left = runs.entries.length
  }

  start(): Subscription {
    this.#all.add(this.#outer?.onChange(() => this.#hold()))
    this.#hold()
    this.#add(this.#runs.entries)
    return this.#all
  }

  #add(entries: readonly Entry[]): void {
    this.#adding = true
    const writing = writeRuns(this.#context, { ...this.#runs, entries }).subscribe({
      next: (batch) => this.#guarded(() => this.#added(batch)),
      error: (error: unknown) => this.#subscriber.error(error),
      complete: () =>
        this.#guarded(() => {
          this.#adding = false
          this.#addAgain()
        }),
    })
    this.#all.add(writing)
  }

  #added({ entries, answer }: AddedBatch): void {
    // The later runs come behind the first ones.
    this.#cursor ??= usableCursor(answer.run_cursor)
    for (const [position, runId] of answer.run_ids.entries()) {
      const entry = entries[position]
      if (entry !== undefined) this.#running.set(runId, entry)
    }
    // What this answer does not name is somebody else's: the next request is not sent before.
    const early = [...this.#early.values()]
    this.#early.clear()
    this.#hold()
    for (const state of early) this.#ended(state)
    this.#read()
  }

  /** Reads the runs stream while there is anything to wait for. */
  #read(): void {
    if (this.#reading !== undefined || this.#running.size === 0 || this.#all.closed) return
    const query = { include_output: true, ...(this.#cursor !== undefined && { last_event_id: this.#cursor }) }
    const runs = groupRuns(this.#context, this.#runs.groupId, query)
    const reading = new Subscription()
    this.#reading = reading
    this.#all.add(reading)
    const over = () => {
      reading.unsubscribe()
      this.#reading = undefined
    }
    const subscribe = () =>
      runs.subscribe({
        next: (event) => this.#guarded(() => this.#heard(event)),
        error: (error: unknown) => {
          over()
          this.#guarded(() => this.#unreadable(error))
        },
        complete: () => {
          over()
          this.#guarded(() => this.#readOut())
        },
      })
    reading.add(withGate(this.#gate, subscribe))
  }

  #heard(event: ResearchEvent): void {
    if (event.cursor !== undefined) this.#cursor = usableCursor(event.cursor)
    if (event.type !== 'task_run.state' || event.data.run.is_active) return
    if (this.#running.has(event.data.run.run_id)) {
      this.#ended(event.data)
    } else if (this.#adding) {
      this.#early.set(event.data.run.run_id, event.data)
      this.#hold()
    }
  }

  #ended(state: TaskRunState): void {
    const { run, output = null } = state
    const entry = this.#running.get(run.run_id)
    if (entry === undefined) return
    this.#running.delete(run.run_id)
    this.#fruitless = 0

    const retries = this.#retries.get(entry.index) ?? 0
    if (run.status === 'failed' && retries < this.#terms.retryFailed) {
      this.#retries.set(entry.index, retries + 1)
      this.#again.push(entry)
      return this.#addAgain()
    }
    if (run.status !== 'completed') return this.#emit(entry, run, null)
    const checked = this.#terms.check(output)
    if (!(checked instanceof Promise)) return this.#emit(entry, run, checked)
    this.#checks += 1
    this.#hold()
    // It never rejects: a schema that fails is an output that does not fit.
    void checked.then((result) =>
      this.#guarded(() => {
        this.#checks -= 1
        this.#emit(entry, run, result)
        this.#hold()
      }),
    )
  }

  #emit(entry: Entry, run: TaskRun, checked: Checked): void {
    if (this.#subscriber.closed) return
    this.#left -= 1
    const result =
      checked instanceof OutputSchemaError ? { ...entry, run, misfit: checked } : { ...entry, run }
    if (run.status !== 'completed' || checked instanceof OutputSchemaError) this.#unfinished.push(result)
    this.#subscriber.next({ ...result, output: checked instanceof OutputSchemaError ? null : checked })
    if (this.#left === 0) this.#finish()
  }

  /** Adds what has failed meanwhile, in one go. */
  #addAgain(): void {
    if (this.#adding || this.#again.length === 0 || this.#all.closed) return
    const entries = this.#again
    this.#again = []
    this.#add(entries)
  }

  #finish(): void {
    if (this.#unfinished.length === 0) return this.#subscriber.complete()
    const runs = this.#unfinished.toSorted((one, other) => one.index - other.index)
    this.#subscriber.error(new ExecutionError(this.#runs.groupId, runs, this.#runs.entries.length))
  }

  /** The stream ended: right for a group that is idle until the next batch, wrong while a run of ours is not told. */
  #readOut(): void {
    if (this.#running.size === 0) return
    this.#fruitless += 1
    if (this.#fruitless < MAX_FRUITLESS) {
      if (this.#fruitless === MAX_FRUITLESS - 1) this.#cursor = ''
      return this.#read()
    }
    const request = { method: 'GET', path: `${groupSource(this.#runs.groupId)}/runs` }
    const missing = `the stream ended, and runs that were added were not told of: ${this.#running.size}`
    this.#subscriber.error(new ProtocolError(missing, request, { retryable: false }))
  }

  #unreadable(error: unknown): void {
    if (!(error instanceof ValidationError) || !this.#cursor) return this.#subscriber.error(error)
    // The service no longer knows the position; what it tells again is recognised.
    this.#cursor = ''
    this.#read()
  }

  /** Passes what a step throws to the subscriber. RxJS would throw it where nothing can catch it. */
  #guarded(step: () => void): void {
    try {
      step()
    } catch (thrown) {
      this.#subscriber.error(thrown)
    }
  }

  /** Stops the reading while the consumer is behind, and while too much is put by or being checked. */
  #hold(): void {
    const isFull = this.#early.size >= MAX_EARLY || this.#checks >= MAX_CHECKS
    if (this.#outer?.closed === true || isFull) this.#gate.close()
    else this.#gate.open()
  }
}

function isList(inputs: readonly RunInput[] | AddRunsRequest): inputs is readonly RunInput[] {
  return Array.isArray(inputs)
}

/** A cursor that is no text has no position in it: the stream is read from its beginning. */
function usableCursor(cursor: unknown): string {
  return typeof cursor === 'string' && cursor.trim() !== '' ? cursor : ''
}

function outcome({ run: { status, error }, misfit }: UnfinishedRun): string {
  if (misfit !== undefined) return `(${misfit.message})`
  const message = typeof error?.message === 'string' ? ` (${error.message})` : ''
  return status === 'cancelled' ? 'was cancelled' : `${status}${message}`
}
