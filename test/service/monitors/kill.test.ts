/* oxlint-disable no-await-in-loop -- one process after another */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Monitor, TaskRun } from 'rivulet'
import { expect, it, onTestFinished } from 'vitest'
import { programFiles } from '../../support/programs.ts'
import { folderOf, write } from '../corpus/folder.ts'
import { temporaryFolder } from '../running.ts'
import type { PaginatedMonitorEvents } from '../../../src/protocol/monitor.ts'

const fileOf = await programFiles()

const HEADERS = { 'x-api-key': 'key', 'content-type': 'application/json' }
const TASK_SPEC = {
  output_schema: {
    type: 'json',
    json_schema: { type: 'object', properties: { license: { type: 'string' } } },
  },
}

const readme = (license: string) => ({ 'tidelib/README.md': `# tidelib\n\n## License\n\n${license}\n` })

/** A service in a process of its own, killed after the test. */
async function startProcess(docs: string, data: string) {
  const child = fork(fileOf('test/service/find-all/service-process.ts'), [docs, data, 'key'], {
    execArgv: ['--conditions=rivulet-source', '--disable-warning=ExperimentalWarning'],
  })
  const exited = once(child, 'exit')
  onTestFinished(() => void child.kill('SIGKILL'))
  const [url] = await once(child, 'message')
  return {
    async request<Body>(path: string, body?: unknown): Promise<Body> {
      const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
      const response = await fetch(`${url}/v1${path}`, { headers: HEADERS, ...init })
      const text = await response.text()
      return JSON.parse(text === '' ? 'null' : text)
    },
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

it(
  'a snapshot monitor reports each change once when its service is killed at each execution',
  { timeout: 120_000 },
  async () => {
    const docs = await folderOf(readme('MIT'))
    const file = join(await temporaryFolder(), 'service.db')
    let service = await startProcess(docs, file)
    const run = await service.request<TaskRun>('/tasks/runs', {
      input: 'tidelib',
      processor: 'base',
      task_spec: TASK_SPEC,
    })
    await service.request(`/tasks/runs/${run.run_id}/result`)
    const settings = { task_run_id: run.run_id }
    const { monitor_id } = await service.request<Monitor>('/monitors', {
      type: 'snapshot',
      frequency: '30d',
      settings,
    })
    const licenses = ['ISC', 'Apache 2.0', 'BSD 3-Clause', 'MIT']
    for (const license of licenses) {
      await write(docs, readme(license))
      await service.request(`/monitors/${monitor_id}/trigger`, {})
      // The trigger is acknowledged. Its execution is at any stage.
      await service.kill()
      service = await startProcess(docs, file)
      const { request } = service
      await expect
        .poll(
          async () => (await request<Monitor>(`/monitors/${monitor_id}`)).output?.latest_snapshot?.content,
          { timeout: 20_000 },
        )
        .toEqual({ license })
    }

    const page = await service.request<PaginatedMonitorEvents>(`/monitors/${monitor_id}/events`)
    const changes = page.events
      .toReversed()
      .map((event) =>
        event.event_type === 'snapshot'
          ? [event.previous_output.content, event.changed_output.content]
          : event,
      )
    const before = ['MIT', ...licenses]
    expect(changes).toEqual(licenses.map((license, at) => [{ license: before[at] }, { license }]))
  },
)
