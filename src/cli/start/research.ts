import type { Monitor, ResearchClient, RunInput } from 'rivulet'
import { firstValueFrom, lastValueFrom } from 'rxjs'
import { FIELD_NOTES, FIELD_NOTES_QUERY } from './field-notes.ts'

/** The query of the demonstration's search. */
export const QUERY = 'backpressure in streams'

const QUESTION = 'What is this package for, which licence is it under, and how is it installed?'

const SCHEMA = {
  type: 'object',
  properties: {
    purpose: { type: 'string', description: 'What the package is for, in one sentence' },
    licence: { type: 'string', description: 'The licence that the package is published under, such as MIT' },
    install: { type: 'string', description: 'The command that installs the package, such as npm install' },
  },
}

/** Adds a run for each package to a new group, and resolves with the group's id. */
export async function researchPackages(
  client: ResearchClient,
  packages: readonly string[],
  webhookUrl: string,
  signal: AbortSignal,
): Promise<string> {
  const { taskgroup_id } = await firstValueFrom(client.taskGroups.create({ signal }))
  const inputs = packages.map((name) => packageRun(name, webhookUrl))
  await lastValueFrom(client.taskGroups.addRuns(taskgroup_id, { inputs }, { signal }))
  return taskgroup_id
}

/** The run that researches a package, with a webhook. */
function packageRun(name: string, webhookUrl: string): RunInput {
  return {
    input: { package: name, question: QUESTION },
    processor: 'base',
    metadata: { package: name },
    task_spec: { output_schema: { type: 'json', json_schema: SCHEMA } },
    webhook: { url: webhookUrl, event_types: ['task_run.status'] },
  }
}

/** Creates the monitor of the field notes' folder, with a webhook. */
export async function createFieldNotesMonitor(
  client: ResearchClient,
  webhookUrl: string,
  signal: AbortSignal,
): Promise<Monitor> {
  const request = {
    type: 'event_stream',
    frequency: '1h',
    settings: {
      query: FIELD_NOTES_QUERY,
      advanced_settings: { source_policy: { include_domains: [FIELD_NOTES] } },
    },
    webhook: { url: webhookUrl, event_types: ['monitor.event.detected'] },
  } as const
  return firstValueFrom(client.monitors.create(request, { signal }))
}
