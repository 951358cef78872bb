import { FIELD_BASIS_BETA, WEBHOOK_BETA } from '../../../protocol/betas.ts'
import { createRunRequest, runResultQuery } from '../../../protocol/requests/tasks.ts'
import { runStreamEvent, storedInput, taskRun, taskRunResult } from '../answers/tasks.ts'
import type { Endpoint } from '../endpoint.ts'

const area = 'Tasks'

/** The endpoints of single runs; beyond the interface document. */
export const taskEndpoints: readonly Endpoint[] = [
  {
    method: 'POST',
    path: '/v1/tasks/runs',
    operationId: 'createRun',
    summary: 'Creates a run',
    area,
    body: { name: 'CreateRunRequest', schema: createRunRequest },
    status: 202,
    answer: taskRun,
    quota: 'runs',
    errors: { 402: 'Active runs reserve the credit', 503: 'Too many schemas wait for a check' },
    betas: [WEBHOOK_BETA, FIELD_BASIS_BETA],
  },
  {
    method: 'GET',
    path: '/v1/tasks/runs/:run_id',
    operationId: 'getRun',
    summary: 'Returns a run',
    area,
    answer: taskRun,
  },
  {
    method: 'GET',
    path: '/v1/tasks/runs/:run_id/input',
    operationId: 'getRunInput',
    summary: 'Returns the input of a run, without credentials of its tool servers',
    area,
    answer: storedInput,
  },
  {
    method: 'GET',
    path: '/v1/tasks/runs/:run_id/result',
    operationId: 'getRunResult',
    summary: 'Waits for a run to end, and returns its output',
    area,
    query: runResultQuery,
    answer: taskRunResult,
    errors: { 408: 'The run is still active' },
  },
  ...(['v1', 'v1beta'] as const).map((version): Endpoint => ({
    method: 'GET',
    path: `/${version}/tasks/runs/:run_id/events`,
    operationId: version === 'v1' ? 'streamRun' : 'streamRunBeta',
    summary: 'Streams the state, the progress and the trace of a run. The stream cannot be resumed',
    area,
    events: runStreamEvent,
  })),
]
