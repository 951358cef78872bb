import {
  catchError,
  concatMap,
  defer,
  firstValueFrom,
  lastValueFrom,
  map,
  of,
  switchMap,
  timer,
  toArray,
} from 'rxjs'
import type { Observable } from 'rxjs'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { attemptOf, metadataOfRetry } from '../../protocol/attempt.ts'
import { checkBoolean, checkId, checkList, checkOneOf, checkOptions } from '../../protocol/check.ts'
import { groupSource } from '../../protocol/event.ts'
import type { TaskRunState } from '../../protocol/event.ts'
import { checkRequest } from '../../protocol/requests/check.ts'
import { withDefaults } from '../../protocol/requests/defaults.ts'
import { runInput } from '../../protocol/requests/tasks.ts'
import type { McpServer, RunInput, TaskRun } from '../../protocol/task.ts'
import { ProtocolError, RequestError } from '../../transport/errors.ts'
import { ADD_RUNS_OPTIONS, prepareRuns, writeSettings } from './add-runs.ts'
import type { AddRunsOptions } from './add-runs.ts'
import { allRuns, groupStatus, KEY, metadataOf, RunsMissingError } from './settle-runs.ts'
import type { Context } from '../context.ts'
import { fromAsync } from '../shapes/from-async.ts'
import { awaitableAs, sourceOf } from '../shapes/source.ts'
import type { AwaitableSource } from '../shapes/source.ts'
import { withReconnect } from '../shapes/with-reconnect.ts'
import { writeRuns } from './write-runs.ts'
import type { RunsToWrite } from './write-runs.ts'

const STATUSES = ['failed', 'cancelled'] as const

/** Options of `taskGroups.retry`. */
export interface RetryOptions extends AddRunsOptions {
  /** The statuses of the runs to retry. Default `['failed']`. */
  readonly statuses?: readonly (typeof STATUSES)[number][]
  /** Whether to retry a run of these statuses: true or false, not a promise. Default: each. What it throws is the error of the retry. */
  readonly where?: (run: TaskRun, input: RunInput) => boolean
  /**
   * The headers for a tool server of a run, which the service does not give back; `{}` for a server without. They may contain a
   * credential: look at the server's `url`. Undefined means that they are not known, and causes a {@link MissingHeadersError}. Default: none are known.
   */
  readonly mcpHeaders?: (server: McpServer, run: TaskRun) => McpServer['headers']
}

/** A run that takes the place of another one. */
export interface RetriedRun {
  /** The run that ended. */
  readonly replaced: TaskRun
  /** The id of the new run. */
  readonly run_id: string
  /** Which attempt at the input the new run is: 2 if the replaced one was the first. */
  readonly attempt: number
}

/** The headers for tool servers of the runs to retry are not known. Nothing was added: call again with `mcpHeaders`. */
export class MissingHeadersError extends RequestError {
  override readonly name = 'MissingHeadersError'
  override readonly code = 'missing_headers'
  override readonly taken = 'no'
  // A getter, so that no logger copies the URLs.
  readonly #urls: readonly string[]

  constructor(groupId: string, urls: ReadonlySet<string>) {
    const advice =
      'the service does not give back the headers for these tool servers; give them with mcpHeaders'
    const origins = new Set([...urls].map((url) => new URL(url).origin))
    super(`${advice}: ${[...origins].slice(0, 10).join(', ')}`, runsOf(groupId, 'POST'))
    this.#urls = [...urls]
  }

  /** The URLs of the tool servers. The message has their origins only, since the rest may be secret. */
  get urls(): readonly string[] {
    return this.#urls
  }
}

/**
 * Creates `taskGroups.retry`, which adds the inputs of failed runs to their group again (§1), and emits each replaced run with the
 * id of the new one. Completes when all are added, without waiting for their end. An `await` resolves to all of them.
 *
 * A new run has everything that the replaced one was given, and names that run in its metadata. So a later call, of another
 * process too, does not replace a run again; it replaces the new run if that one failed. No endpoint lists active runs, so a
 * retry starts when no run of the group is active. The retries of one client wait for each other. Two processes that retry a group at
 * the same time, or an `execute` with `retryFailed` beside a retry, may both replace the same run: the service has no way to prevent it.
 *
 * Errors as `addRuns` does; the indexes in an `UncertainWriteError` and in a `PartialWriteError` count the runs to
 * replace in the order of their ending. After such an error, the same call is safe once the service has processed the failed
 * request: it recognizes the runs that were added.
 */
export function createRetry(context: Context) {
  // The end of the last retry of each group. Without it, a second call could read the group before the first one has added.
  const turns = new Map<string, Promise<void>>()

  return (groupId: string, options: RetryOptions = {}): AwaitableSource<RetriedRun, RetriedRun[]> => {
    checkId('groupId', groupId)
    checkOptions('taskGroups.retry', options, [...ADD_RUNS_OPTIONS, 'statuses', 'where', 'mcpHeaders'])
    const {
      statuses = ['failed'],
      where = () => true,
      mcpHeaders = () => undefined,
      signal,
      ...write
    } = options
    checkList('statuses', statuses)
    for (const [index, status] of statuses.entries()) checkOneOf(`statuses[${index}]`, status, STATUSES)
    for (const [name, value] of Object.entries({ where, mcpHeaders }))
      if (typeof value !== 'function') throw new ArgumentError(name, 'a function', value)
    const { settleDelay } = writeSettings(write)

    const retried = fromAsync<RetriedRun>((subscriber, unsubscribed) => {
      const before = turns.get(groupId)
      let isWriting = false
      const turn = (async () => {
        await before
        unsubscribed.throwIfAborted()
        const ended = sourceOf(unreplacedRuns(context, groupId, statuses), unsubscribed)
        const chosen = (await firstValueFrom(ended)).filter(({ run, input }) => {
          const isChosen: unknown = where(run, input)
          // A promise would choose each run.
          checkBoolean('where(run, input)', isChosen)
          return isChosen
        })
        if (chosen.length === 0) return
        const inputs = withHeaders(groupId, chosen, mcpHeaders)
        const replacing = replaceRuns(context, prepareRuns(context, groupId, { inputs }, write), chosen)
        isWriting = true
        await sourceOf(replacing, unsubscribed).forEach((one) => subscriber.next(one))
        isWriting = false
      })()
      // The service may still be processing a request that failed.
      const over: Promise<void> = turn
        .catch(() => (isWriting ? firstValueFrom(timer(settleDelay, context.scheduler)) : undefined))
        .then(() => void (turns.get(groupId) === over && turns.delete(groupId)))
      turns.set(groupId, over)
      return turn
    })
    return awaitableAs(retried, signal, (source) => lastValueFrom(source.pipe(toArray())))
  }
}

/** An ended run with its input. */
type RetriableRun = TaskRunState & { readonly input: RunInput }

/** The runs of a group with these statuses that no other run has replaced, when no run of the group is active. */
function unreplacedRuns(
  context: Context,
  groupId: string,
  statuses: readonly string[],
): Observable<readonly RetriableRun[]> {
  return defer(() => {
    const found = new Map<string, RetriableRun>()
    const replaced = new Set<string>()
    const see = (state: TaskRunState) => {
      // A run without metadata could be one that has replaced another.
      metadataOf(groupId, state)
      const { run, input } = state
      const { replaces } = attemptOf(state)
      if (replaces !== undefined) replaced.add(replaces)
      if (!statuses.includes(run.status)) {
        found.delete(run.run_id)
      } else if (input == null) {
        const what = `the run ${run.run_id} came without its input`
        throw new ProtocolError(what, runsOf(groupId, 'GET'), { retryable: false })
      } else {
        found.set(run.run_id, { ...state, input })
      }
    }
    let seen = -1
    const hasProgress = (error: unknown) => {
      if (!(error instanceof RunsMissingError) || error.seen === seen) return false
      seen = error.seen
      return true
    }
    return groupStatus(context, groupId).pipe(
      switchMap((now) =>
        // The stream of a group without runs would wait for the first one.
        now.num_task_runs === 0 ? of(now) : allRuns(context, groupId, see),
      ),
      withReconnect(context, groupSource(groupId), { retryable: hasProgress }),
      catchError((error: unknown) => {
        if (!(error instanceof RunsMissingError)) throw error
        throw new ProtocolError(error.message, runsOf(groupId, 'GET'), { retryable: false })
      }),
      map(() => [...found.values()].filter(({ run }) => !replaced.has(run.run_id))),
    )
  })
}

/** Adds the runs that replace these, in the same order, and emits each. */
function replaceRuns(
  context: Context,
  runs: RunsToWrite,
  replaced: readonly RetriableRun[],
): Observable<RetriedRun> {
  const entries = runs.entries.flatMap((entry) => {
    const state = replaced[entry.index]
    return state === undefined ? [] : [{ ...entry, attempt: metadataOfRetry(state) }]
  })
  return writeRuns(context, { ...runs, entries }).pipe(
    concatMap(({ entries: added, response }) =>
      added.flatMap(({ index }, position): RetriedRun[] => {
        const [state, run_id] = [replaced[index], response.run_ids[position]]
        if (state === undefined || run_id === undefined) return []
        return [{ replaced: state.run, run_id, attempt: attemptOf(state).number + 1 }]
      }),
    ),
  )
}

/** The inputs of the runs to retry, with the headers for their tool servers and without the keys that writing sets. */
function withHeaders(
  groupId: string,
  runs: readonly RetriableRun[],
  headersFor: Required<RetryOptions>['mcpHeaders'],
): RunInput[] {
  const missing = new Set<string>()
  const inputs = runs.map((state) => {
    const { mcp_servers: servers, metadata, ...rest } = givenInput(groupId, state)
    const withAll = servers?.map((server) => {
      const headers = headersFor(server, state.run)
      if (headers === undefined) missing.add(server.url)
      return Object.assign({}, server, { headers: headers ?? {} })
    })
    const { [KEY]: _key, ...own } = metadata ?? {}
    return { ...rest, metadata: own, ...(withAll !== undefined && { mcp_servers: withAll }) }
  })
  if (missing.size > 0) throw new MissingHeadersError(groupId, missing)
  return inputs
}

/**
 * The input as it was given. A service may send null for what was left out, which a request does not accept, and the metadata with the
 * run alone. Another client may have left out what has a default.
 */
function givenInput(groupId: string, { run, input }: RetriableRun): RunInput {
  try {
    const given = withDefaults(runInput, { ...input, metadata: input.metadata ?? run.metadata })
    checkRequest(runInput, given)
    return given
  } catch (cause) {
    const what = `the input of the run ${run.run_id} cannot be added again`
    throw new ProtocolError(what, runsOf(groupId, 'GET'), { cause, retryable: false })
  }
}

function runsOf(groupId: string, method: 'GET' | 'POST') {
  return { method, path: `${groupSource(groupId)}/runs` }
}
