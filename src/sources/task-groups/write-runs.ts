import { catchError, firstValueFrom, of, timer } from 'rxjs'
import type { Observable } from 'rxjs'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { isRetryable, retryDelay } from '../../protocol/backoff.ts'
import { groupSource } from '../../protocol/event.ts'
import { MAX_RUNS_PER_REQUEST } from '../../protocol/limits.ts'
import type { AddRunsRequest, AddRunsResponse, TaskGroupStatus } from '../../protocol/task-group.ts'
import type { OutputSchema, RunInput } from '../../protocol/task.ts'
import { WEBHOOK_BETA } from '../../protocol/betas.ts'
import { ProtocolError, RequestError } from '../../transport/errors.ts'
import type { ApiRequest } from '../../transport/transport.ts'
import type { Context } from '../context.ts'
import { fromAsync } from '../shapes/from-async.ts'
import { requestShape } from '../shapes/request.ts'
import { KEY, settleRuns } from './settle-runs.ts'
import { sourceOf } from '../shapes/source.ts'
import { taskGroup } from './read.ts'
import { PartialWriteError, UncertainWriteError } from './write-errors.ts'

/** An input and its index in the caller's `inputs`. */
export interface Entry {
  readonly index: number
  readonly input: RunInput
  /** Added to the metadata of the run: which attempt it is. */
  readonly attempt?: Readonly<Record<string, string>>
}

/** A batch of inputs that were added, and the response with their run ids in the same order. */
export interface AddedBatch {
  readonly entries: readonly Entry[]
  readonly response: AddRunsResponse
}

/** The runs to add, their group, and how to add them. */
export interface RunsToWrite {
  readonly groupId: string
  readonly entries: readonly Entry[]
  /** The fields of each request other than `inputs`. */
  readonly shared: Omit<AddRunsRequest, 'inputs'>
  /** The query of each request. */
  readonly query?: ApiRequest['query']
  /** The output schema of every run; undefined keeps that of each input. */
  readonly outputSchema?: OutputSchema | undefined
  /** How to determine whether an uncertain request was accepted; undefined means that it is not retried. */
  readonly settling?: { readonly delay: number; readonly timeout: number } | undefined
}

/** The most times that one input is sent, if each time it turns out that it was not added. */
const MAX_SENDS = 10

/**
 * Adds runs in sequential requests of at most 1,000 inputs (§4.3), and emits each batch when it is added. An input is sent again
 * only if it was certainly not added, by the service's response or by {@link settleRuns}.
 */
export function writeRuns(context: Context, runs: RunsToWrite): Observable<AddedBatch> {
  return fromAsync((subscriber, signal) =>
    new RunWriter(context, runs, signal).write((batch) => subscriber.next(batch)),
  )
}

/** Returns the request that adds runs (§4.3). */
export function addRunsRequest(
  groupId: string,
  body: AddRunsRequest,
  query?: ApiRequest['query'],
): ApiRequest {
  return {
    method: 'POST',
    path: `${groupSource(groupId)}/runs`,
    query,
    body,
    betas: body.inputs.some(({ webhook }) => webhook !== undefined) ? [WEBHOOK_BETA] : [],
    quota: 'runs',
    idempotent: false,
  }
}

class RunWriter {
  readonly #context: Context
  readonly #runs: RunsToWrite
  readonly #signal: AbortSignal
  /** The ids of the runs that were added. */
  readonly #added = new Map<Entry, string>()
  readonly #responses: AddRunsResponse[] = []
  /** Makes the keys of this write unique. */
  readonly #nonce = nonce()
  /** The last known number of runs in the group. */
  #groupSize: number | undefined

  constructor(context: Context, runs: RunsToWrite, signal: AbortSignal) {
    this.#context = context
    this.#runs = runs
    this.#signal = signal
  }

  async write(emit: (batch: AddedBatch) => void): Promise<void> {
    const { entries, groupId, settling } = this.#runs
    if (settling !== undefined) {
      // Optional: without it, settling is only slower.
      const group = taskGroup(this.#context, groupId).pipe(catchError(() => of(undefined)))
      this.#groupSize = (await this.#first(group))?.status?.num_task_runs
    }
    for (let start = 0; start < entries.length; start += MAX_RUNS_PER_REQUEST) {
      const batch = entries.slice(start, start + MAX_RUNS_PER_REQUEST)
      const response = await this.#add(batch)
      this.#groupSize = response.status?.num_task_runs
      this.#responses.push(response)
      emit({ entries: batch, response })
    }
  }

  async #add(batch: readonly Entry[]): Promise<AddRunsResponse> {
    const { scheduler, backoff, random } = this.#context
    const { settling } = this.#runs
    let remaining = batch
    for (let sends = 1; ; sends++) {
      const startedAt = scheduler.now()
      let failure: unknown
      try {
        const response = await this.#send(remaining)
        return remaining === batch ? response : this.#combined(batch, response.status)
      } catch (error) {
        failure = error
      }
      this.#signal.throwIfAborted()
      if (isNotTaken(failure)) throw this.#errorFor(failure)
      if (settling === undefined) throw this.#errorFor(failure, remaining)

      // The service may still be processing a slow request: waits at least as long as the request took.
      const duration = scheduler.now() - startedAt
      const delay = retryDelay(failure, sends - 1, backoff, random)
      await this.#first(timer(Math.max(settling.delay, duration, delay), scheduler))
      const status = await this.#settle(remaining, failure, settling.timeout)
      const missing = remaining.filter((entry) => !this.#added.has(entry))
      if (missing.length === 0) return this.#combined(batch, status)
      if (missing.length < remaining.length) remaining = missing
      if (sends === MAX_SENDS || !isRetryable(failure)) throw this.#errorFor(failure)
    }
  }

  /** Sends one request, which the transport retries if the service cannot have acted on it. */
  async #send(entries: readonly Entry[]): Promise<AddRunsResponse> {
    const { groupId, shared, query } = this.#runs
    const inputs = entries.map((entry) => this.#tagged(entry, this.#withSchema(entry.input)))
    const request = addRunsRequest(groupId, { ...shared, inputs }, query)
    const response = await this.#first(requestShape<AddRunsResponse>(this.#context, request, ['run_ids']))
    const ids = new Set(response.run_ids.filter((id: unknown) => typeof id === 'string' && id !== ''))
    if (ids.size !== entries.length || response.run_ids.length !== entries.length) {
      throw new ProtocolError(`the response to ${entries.length} inputs has ${ids.size} run ids`, request)
    }
    for (const [position, runId] of response.run_ids.entries()) {
      const entry = entries[position]
      if (entry !== undefined) this.#added.set(entry, runId)
    }
    return response
  }

  /** Determines which inputs of a failed request were added. */
  async #settle(entries: readonly Entry[], failure: unknown, timeout: number): Promise<TaskGroupStatus> {
    const byKey = new Map(entries.map((entry) => [this.#key(entry), entry]))
    const onAdded = (key: string, runId: string) => {
      const entry = byKey.get(key)
      if (entry !== undefined) this.#added.set(entry, runId)
    }
    const request = { keys: byKey.keys(), runsBefore: this.#groupSize, timeout, onAdded }
    try {
      const status = await this.#first(settleRuns(this.#context, this.#runs.groupId, request))
      this.#groupSize = status.num_task_runs
      return status
    } catch (reason) {
      this.#signal.throwIfAborted()
      throw this.#errorFor(failure, entries, reason)
    }
  }

  /** The response for a batch that was added in several requests, or whose response was lost. */
  #combined(batch: readonly Entry[], status: TaskGroupStatus): AddRunsResponse {
    const previous = this.#responses.at(-1)
    return {
      status,
      run_ids: batch.map((entry) => this.#added.get(entry) ?? ''),
      // The cursors of these runs are unknown, but come after the previous ones.
      run_cursor: previous?.run_cursor ?? '',
      event_cursor: previous?.event_cursor ?? '',
    }
  }

  /** The error of the write: the cause itself if nothing was added and nothing is in doubt. */
  #errorFor(cause: unknown, uncertain: readonly Entry[] = [], unsettled?: unknown): unknown {
    const { groupId, entries } = this.#runs
    const inDoubt = new Set(uncertain.filter((entry) => !this.#added.has(entry)))
    const progress = {
      added: entries.flatMap((entry) => {
        const run_id = this.#added.get(entry)
        return run_id === undefined ? [] : [{ index: entry.index, run_id }]
      }),
      notAdded: indexes(entries.filter((entry) => !this.#added.has(entry) && !inDoubt.has(entry))),
      inDoubt: indexes([...inDoubt]),
      answers: this.#responses,
    }
    if (inDoubt.size > 0) return new UncertainWriteError(groupId, cause, progress, unsettled)
    return this.#added.size > 0 ? new PartialWriteError(groupId, cause, progress) : cause
  }

  #key({ index }: Entry): string {
    return `${this.#nonce}:${index}`
  }

  #tagged(entry: Entry, input: RunInput): RunInput {
    const isKeyed = this.#runs.settling !== undefined
    if (!isKeyed && entry.attempt === undefined) return input
    const key = isKeyed && { [KEY]: this.#key(entry) }
    return { ...input, metadata: { ...input.metadata, ...entry.attempt, ...key } }
  }

  /** Sets the output schema in the input's own spec, which replaces the request's default spec (§4.3). */
  #withSchema(input: RunInput): RunInput {
    const { outputSchema, shared } = this.#runs
    if (outputSchema === undefined) return input
    const spec = input.task_spec ?? shared.default_task_spec
    return { ...input, task_spec: { ...spec, output_schema: outputSchema } }
  }

  #first<T>(observable: Observable<T>): Promise<T> {
    return firstValueFrom(sourceOf(observable, this.#signal))
  }
}

/** Whether the service has certainly not acted on a request with this error. */
function isNotTaken(error: unknown): boolean {
  // An ArgumentError is thrown before the request is sent. Any other foreign error is uncertain.
  return error instanceof RequestError ? error.taken === 'no' : error instanceof ArgumentError
}

function indexes(entries: readonly Entry[]): number[] {
  return entries.map(({ index }) => index)
}

/** 16 random bytes as hex. `randomUUID` does not exist on pages without https. */
function nonce(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
