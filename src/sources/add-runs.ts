import { concatMap, from } from 'rxjs'
import { ArgumentError } from '../protocol/argument-error.ts'
import {
  checkCountryCode,
  checkId,
  checkList,
  checkObject,
  checkSourcePolicy,
  checkText,
  checkUrl,
} from '../protocol/check.ts'
import { groupSource } from '../protocol/event.ts'
import { MAX_RUNS_PER_REQUEST } from '../protocol/limits.ts'
import type { AddRunsRequest, AddRunsResponse } from '../protocol/task-group.ts'
import type { RunInput } from '../protocol/task.ts'
import type { Context } from './context.ts'
import { requestShape } from './request.ts'
import { sourceOf } from './source.ts'
import type { Source, SourceOptions } from './source.ts'

/** The beta feature that lets a run post to a webhook (§6.1). */
const WEBHOOK_BETA = 'webhook-2025-08-12'

/**
 * Adds runs to a group (§4.3), any number of them: each 1,000 inputs make one request, one after the other, and each
 * request's answer is emitted as it comes. A request that the service may have taken is not sent again.
 */
export function addRuns(
  context: Context,
  groupId: string,
  request: AddRunsRequest,
  { signal }: SourceOptions = {},
): Source<AddRunsResponse> {
  checkId('groupId', groupId)
  checkObject('request', request)
  const { inputs, ...shared } = request
  checkList('inputs', inputs)
  for (const [index, input] of inputs.entries()) checkRunInput(`inputs[${index}]`, input)

  const batches: RunInput[][] = []
  for (let start = 0; start < inputs.length; start += MAX_RUNS_PER_REQUEST) {
    batches.push(inputs.slice(start, start + MAX_RUNS_PER_REQUEST))
  }
  const add = (batch: RunInput[]) =>
    requestShape<AddRunsResponse>(
      context,
      {
        method: 'POST',
        path: `${groupSource(groupId)}/runs`,
        body: { ...shared, inputs: batch },
        betas: batch.some((input) => input.webhook !== undefined) ? [WEBHOOK_BETA] : [],
        idempotent: false,
      },
      ['run_ids'],
    )
  return sourceOf(from(batches).pipe(concatMap(add)), signal)
}

/** Checks a run input (§2.8). */
function checkRunInput(argument: string, run: unknown): void {
  checkObject(argument, run)
  const { input, processor, metadata, source_policy, advanced_settings, webhook } = run
  if (typeof input !== 'string') {
    if (typeof input !== 'object' || input === null || Array.isArray(input)) {
      throw new ArgumentError(`${argument}.input`, 'a string or an object', input)
    }
  }
  if (processor !== undefined) checkText(`${argument}.processor`, processor)
  if (metadata !== undefined) checkObject(`${argument}.metadata`, metadata)
  if (source_policy !== undefined) checkSourcePolicy(`${argument}.source_policy`, source_policy)
  if (advanced_settings !== undefined) {
    checkObject(`${argument}.advanced_settings`, advanced_settings)
    if (advanced_settings['location'] !== undefined) {
      checkCountryCode(`${argument}.advanced_settings.location`, advanced_settings['location'])
    }
  }
  if (webhook !== undefined) {
    checkObject(`${argument}.webhook`, webhook)
    checkUrl(`${argument}.webhook.url`, webhook['url'])
    checkList(`${argument}.webhook.event_types`, webhook['event_types'])
  }
}
