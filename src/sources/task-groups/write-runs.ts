import { catchError, firstValueFrom, of, timer } from 'rxjs'
import type { Observable } from 'rxjs'
import { retryAfterOf } from '../../protocol/retry-after.ts'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { backoffDelay, isRetryable } from '../../protocol/backoff.ts'
import { groupSource } from '../../protocol/event.ts'
import { MAX_RUNS_PER_REQUEST } from '../../protocol/limits.ts'
import type { AddRunsRequest, AddRunsResponse, TaskGroupStatus } from '../../protocol/task-group.ts'
import type { OutputSchema, RunInput } from '../../protocol/task.ts'
import { WEBHOOK_BETA } from '../../protocol/webhook.ts'
import { ProtocolError, RivuletError } from '../../transport/errors.ts'
import type { ApiRequest } from '../../transport/transport.ts'
import type { Context } from '../context.ts'
import { fedBy } from '../shapes/fed-by.ts'
import { requestShape } from '../shapes/request.ts'
import { KEY, settleRuns } from './settle-runs.ts'
import { sourceOf } from '../shapes/source.ts'
import { getTaskGroup } from './task-groups.ts'
import { PartialWriteError, UncertainWriteError } from './write-errors.ts'

/** An input, and where it stands in the caller's `inputs`. */
export interface Entry {
  readonly index: number
  readonly input: RunInput
}

/** Inputs that were added together, and the answer with their run ids in the same order. */
export interface AddedBatch {
  readonly entries: readonly Entry[]
  readonly answer: AddRunsResponse
}

/** What is added to which group, and how. */
export interface RunsToWrite {
  readonly groupId: string
  readonly entries: readonly Entry[]
  /** What the requests carry beside their inputs. */
  readonly shared: Omit<AddRunsRequest, 'inputs'>
  /** What every run shall answer with; undefined leaves that to the inputs. */
  readonly outputSchema?: OutputSchema | undefined
  /** How to find out what became of a request that may have been taken; without it nothing is sent again. */
  readonly settling?: { readonly delay: number; readonly timeout: number } | undefined
}

/** How often one input is sent, at the most, when each time it turns out that it was not taken. */
const MAX_SENDS = 10

/**
 * Adds runs in requests of at most 1,000 inputs (§4.3), one after the other, and emits each when all of it was added. A
 * request is sent again only where none of it can have been taken, be it that the service said so or that the settling
 * found so.
 */
export function writeRuns(context: Context, runs: RunsToWrite): Observable<AddedBatch> {
  return fedBy((subscriber, signal) =>
    new RunWriter(context, runs, signal).write((batch) => subscriber.next(batch)),
  )
}

/** The request that adds runs (§4.3). */
export function addRunsRequest(groupId: string, body: AddRunsRequest): ApiRequest {
  return {
    method: 'POST',
    path: `${groupSource(groupId)}/runs`,
    body,
    betas: body.inputs.some(({ webhook }) => webhook !== undefined) ? [WEBHOOK_BETA] : [],
    idempotent: false,
  }
}

class RunWriter {
  readonly #context: Context
  readonly #runs: RunsToWrite
  readonly #signal: AbortSignal
  /** The ids of the runs that were added. */
  readonly #added = new Map<Entry, string>()
  readonly #answers: AddRunsResponse[] = []
  /** Makes this write's keys differ from those of every other write. */
  readonly #nonce = nonce()
  /** How many runs the group had when it was asked last. */
  #known: number | undefined

  constructor(context: Context, runs: RunsToWrite, signal: AbortSignal) {
    this.#context = context
    this.#runs = runs
    this.#signal = signal
  }

  async write(tell: (batch: AddedBatch) => void): Promise<void> {
    const { entries, groupId, settling } = this.#runs
    if (settling !== undefined) {
      // Not knowing makes settling slower, and no less certain.
      const group = getTaskGroup(this.#context, groupId).pipe(catchError(() => of(undefined)))
      this.#known = (await this.#first(group))?.status?.num_task_runs
    }
    for (let start = 0; start < entries.length; start += MAX_RUNS_PER_REQUEST) {
      const batch = entries.slice(start, start + MAX_RUNS_PER_REQUEST)
      const answer = await this.#add(batch)
      this.#known = answer.status?.num_task_runs
      this.#answers.push(answer)
      tell({ entries: batch, answer })
    }
  }

  async #add(batch: readonly Entry[]): Promise<AddRunsResponse> {
    const { scheduler, backoff, random } = this.#context
    const { settling } = this.#runs
    let left = batch
    for (let sends = 1; ; sends++) {
      const begun = scheduler.now()
      let failure: unknown
      try {
        const answer = await this.#send(left)
        return left === batch ? answer : this.#pieced(batch, answer.status)
      } catch (error) {
        failure = error
      }
      this.#signal.throwIfAborted()
      if (isUntaken(failure)) throw this.#failed(failure)
      if (settling === undefined) throw this.#failed(failure, left)

      // A request that took long may still be under way: it gets as long again to be taken.
      const took = scheduler.now() - begun
      const pause = retryAfterOf(failure) ?? backoffDelay(sends - 1, backoff, random)
      await this.#first(timer(Math.max(settling.delay, took, pause), scheduler))
      const status = await this.#settle(left, failure, settling.timeout)
      const rest = left.filter((entry) => !this.#added.has(entry))
      if (rest.length === 0) return this.#pieced(batch, status)
      if (rest.length < left.length) left = rest
      if (sends === MAX_SENDS || !isRetryable(failure)) throw this.#failed(failure)
    }
  }

  /** Makes one request, which the transport sends again where the service cannot have taken it. */
  async #send(entries: readonly Entry[]): Promise<AddRunsResponse> {
    const { groupId, shared } = this.#runs
    const inputs = entries.map((entry) => this.#tagged(entry, this.#specified(entry.input)))
    const request = addRunsRequest(groupId, { ...shared, inputs })
    const answer = await this.#first(requestShape<AddRunsResponse>(this.#context, request, ['run_ids']))
    const ids = new Set(answer.run_ids.filter((id: unknown) => typeof id === 'string' && id !== ''))
    if (ids.size !== entries.length || answer.run_ids.length !== entries.length) {
      throw new ProtocolError(`${entries.length} inputs were answered with ${ids.size} run ids`, request)
    }
    for (const [position, runId] of answer.run_ids.entries()) {
      const entry = entries[position]
      if (entry !== undefined) this.#added.set(entry, runId)
    }
    return answer
  }

  async #settle(entries: readonly Entry[], failure: unknown, timeout: number): Promise<TaskGroupStatus> {
    const byKey = new Map(entries.map((entry) => [this.#key(entry), entry]))
    const onTaken = (key: string, runId: string) => {
      const entry = byKey.get(key)
      if (entry !== undefined) this.#added.set(entry, runId)
    }
    const doubt = { keys: byKey.keys(), runsBefore: this.#known, timeout, onTaken }
    try {
      const status = await this.#first(settleRuns(this.#context, this.#runs.groupId, doubt))
      this.#known = status.num_task_runs
      return status
    } catch (reason) {
      this.#signal.throwIfAborted()
      throw this.#failed(failure, entries, reason)
    }
  }

  /** The answer to a batch that was added in several requests, or whose answer never came. */
  #pieced(batch: readonly Entry[], status: TaskGroupStatus): AddRunsResponse {
    const before = this.#answers.at(-1)
    return {
      status,
      run_ids: batch.map((entry) => this.#added.get(entry) ?? ''),
      // Where its runs begin nobody said; they come behind those before them.
      run_cursor: before?.run_cursor ?? '',
      event_cursor: before?.event_cursor ?? '',
    }
  }

  /** The error to end with: the cause itself where nothing was added and nothing is in doubt. */
  #failed(cause: unknown, doubtful: readonly Entry[] = [], unsettled?: unknown): unknown {
    const { groupId, entries } = this.#runs
    const inDoubt = new Set(doubtful.filter((entry) => !this.#added.has(entry)))
    const progress = {
      added: entries.flatMap((entry) => {
        const run_id = this.#added.get(entry)
        return run_id === undefined ? [] : [{ index: entry.index, run_id }]
      }),
      notAdded: indexes(entries.filter((entry) => !this.#added.has(entry) && !inDoubt.has(entry))),
      inDoubt: indexes([...inDoubt]),
      answers: this.#answers,
    }
    if (inDoubt.size > 0) return new UncertainWriteError(groupId, cause, progress, unsettled)
    return this.#added.size > 0 ? new PartialWriteError(groupId, cause, progress) : cause
  }

  #key({ index }: Entry): string {
    return `${this.#nonce}:${index}`
  }

  #tagged(entry: Entry, input: RunInput): RunInput {
    if (this.#runs.settling === undefined) return input
    return { ...input, metadata: { ...input.metadata, [KEY]: this.#key(entry) } }
  }

  /** With the output schema in its own spec, which takes the place of the request's as a whole (§4.3). */
  #specified(input: RunInput): RunInput {
    const { outputSchema, shared } = this.#runs
    if (outputSchema === undefined) return input
    const spec = input.task_spec ?? shared.default_task_spec
    return { ...input, task_spec: { ...spec, output_schema: outputSchema } }
  }

  #first<T>(observable: Observable<T>): Promise<T> {
    return firstValueFrom(sourceOf(observable, this.#signal))
  }
}

/** Whether it is certain that the service has not taken a request that failed so. */
function isUntaken(error: unknown): boolean {
  // An ArgumentError comes before anything is sent; of errors that are not the library's nothing is known.
  return error instanceof RivuletError ? error.taken === 'no' : error instanceof ArgumentError
}

function indexes(entries: readonly Entry[]): number[] {
  return entries.map(({ index }) => index)
}

/** 16 random bytes. `randomUUID` is not there on pages without https. */
function nonce(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
