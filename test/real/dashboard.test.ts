import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient, groupEvent, monitorEvent, runEvent } from 'rivulet'
import { openLog } from 'rivulet/log'
import type { ResearchEvent, TaskRun } from 'rivulet'
import { createDashboard } from 'rivulet/dashboard'
import type { GatewayClient } from 'rivulet/gateway'
import { sqliteStore } from 'rivulet/log/sqlite'
import { createResearchService } from 'rivulet/service'
import { nodeListener } from 'rivulet/webhooks'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { append } from '../log/append.ts'
import { startChromium } from './browser.ts'
import type { Page } from './browser.ts'
import { findings } from './dashboard/axe.ts'
import { screenshot } from './dashboard/screenshot.ts'
import { watchedPage } from './dashboard/watched-page.ts'

const CITED = 'https://yard.example/history'
const PASSAGE = 'The yard was founded in 1998, when two docks became one.'
const HISTORY = `# History\n\n${'The river froze that winter. '.repeat(400)}\n\n${PASSAGE}\n\n${'The ice went in March. '.repeat(400)}`

/** A client that finds one document, and adds no runs. */
const SEARCHING: GatewayClient = {
  search: async ({ search_queries: [query] }) => ({
    results: [{ url: CITED, title: `Found for ${query}`, publish_date: '2026-01-31', excerpts: [PASSAGE] }],
  }),
  taskGroups: { addRuns: () => Promise.reject(new Error('no runs are added here')) },
}

/** The dashboard of a log in a file, behind a server that can be cut off. */
async function servedDashboard(client: GatewayClient = SEARCHING) {
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-dashboard-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const store = sqliteStore(join(folder, 'log.db'))
  const log = await openLog(store)
  onTestFinished(() => log.close())
  const dashboard = createDashboard({
    log,
    documents: (url) => (url === CITED ? { title: 'History of the yard', text: HISTORY } : undefined),
    client,
  })
  onTestFinished(() => dashboard.close())

  const listener = nodeListener(dashboard)
  let isCut = false
  const server = createServer((request, response) => {
    if (isCut) request.socket.destroy()
    else listener(request, response)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((done) => server.close(done))
  })
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    base,
    log,
    address: dashboard.address(base),
    append: (...events: readonly ResearchEvent[]) => append(store, events),
    cut() {
      isCut = true
      server.closeAllConnections()
    },
    mend: () => void (isCut = false),
  }
}

let chromium: Awaited<ReturnType<typeof startChromium>>
beforeAll(async () => {
  chromium = await startChromium()
})
afterAll(() => chromium[Symbol.asyncDispose]())

/** The dashboard in a browser that has its key, and no other. `expected` matches messages of the console that the test provokes. */
async function openedDashboard(expected?: RegExp, client?: GatewayClient) {
  const served = await servedDashboard(client)
  // Cookies are those of a host, whatever the port.
  await chromium.context.clearCookies()
  const { page, problems } = await watchedPage(chromium.context, served.base, expected)
  onTestFinished(() => page.close())
  await page.goto(served.address)
  await page.getByText('Live', { exact: true }).waitFor()
  return { ...served, page, problems, context: chromium.context }
}

function groupStatus(group: string, completed: number, queued: number): ResearchEvent {
  return groupEvent(
    group,
    {
      type: 'task_group_status',
      event_id: `status_${completed}`,
      status: {
        num_task_runs: completed + queued,
        task_run_status_counts: { completed, queued },
        is_active: queued > 0,
        status_message: '',
        modified_at: new Date().toISOString(),
      },
    },
    'stream',
  )
}

function completedRun(group: string, id: string): ResearchEvent {
  const now = new Date().toISOString()
  return runEvent(
    {
      run: {
        run_id: id,
        taskgroup_id: group,
        status: 'completed',
        is_active: false,
        processor: 'base',
        created_at: now,
        modified_at: now,
      },
      input: { input: `When was the yard of ${id} founded?` },
      output: {
        type: 'json',
        content: { founded: 1998 },
        basis: [
          {
            field: 'founded',
            reasoning: 'The history names the year.',
            confidence: 'high',
            citations: [{ url: CITED, title: 'History of the yard', excerpts: [PASSAGE] }],
          },
        ],
      },
    },
    'stream',
  )
}

function finding(id: string, text: string): ResearchEvent {
  return monitorEvent(
    'monitor_ice',
    {
      event_type: 'event_stream',
      event_id: id,
      event_group_id: 'group_1',
      event_date: '2026-01',
      output: {
        type: 'text',
        content: text,
        basis: [
          { field: 'output', reasoning: 'It is new.', citations: [{ url: CITED, excerpts: [PASSAGE] }] },
        ],
      },
    },
    'poll',
  )
}

function firing(alert: string): ResearchEvent {
  const now = new Date().toISOString()
  return {
    id: `${alert}:firing`,
    source: `/rules/${alert}`,
    type: 'alert.firing',
    time: now,
    data: {
      alert,
      group: null,
      key: { monitor: 'monitor_ice' },
      labels: { alertname: alert, monitor: 'monitor_ice' },
      annotations: { summary: 'The ice is breaking' },
      value: 3,
      complete: true,
      since: now,
      events: [],
      episode: `${alert}:1`,
    },
    received: now,
    via: 'process',
  }
}

/** Goes to a section by its link, as a user does. */
async function goTo(page: Page, section: string): Promise<void> {
  await page.locator('nav').getByRole('link', { name: section }).click()
}

it('shows what is in the log, and what is appended to it while it is open', async () => {
  const { page, problems, append: appendEvents } = await openedDashboard()
  await page.getByText('No task groups yet').waitFor()

  await appendEvents(groupStatus('tgrp_yards', 1, 3), completedRun('tgrp_yards', 'trun_1'))
  await page.getByText('1 of 4 runs ended').waitFor()
  await page.getByRole('link', { name: /tgrp_yards/ }).click()
  await page.getByText('When was the yard of trun_1 founded?').waitFor()
  await appendEvents(groupStatus('tgrp_yards', 2, 2), completedRun('tgrp_yards', 'trun_2'))
  await page.getByText('When was the yard of trun_2 founded?').waitFor()
  await page.getByText('50% of 4 runs').waitFor()

  await appendEvents(finding('event_1', 'The river is frozen.'))
  await goTo(page, 'Monitors')
  await page.getByRole('link', { name: /monitor_ice/ }).click()
  await page.getByText('The river is frozen.').waitFor()
  await appendEvents(finding('event_2', 'The ice breaks.'))
  await page.getByText('The ice breaks.').waitFor()
  expect(await page.locator('.event-title').allInnerTexts()).toEqual([
    'The ice breaks.',
    'The river is frozen.',
  ])

  await goTo(page, 'Alerts')
  await page.getByText('No rule has had an alert').waitFor()
  await appendEvents(firing('Ice'))
  await page.getByText('The ice is breaking').waitFor()
  await page.locator('nav').getByText('1 firing').waitFor()

  await goTo(page, 'Log')
  await page.getByText('view:dashboard/groups').waitFor()

  await goTo(page, 'Overview')
  await page.getByText('7 in the last hour').waitFor()
  await screenshot(page, 'served-overview', { fullPage: true })
  expect(await findings(page)).toEqual([])
  expect(problems).toEqual([])
})

it('shows a quotation within its document', async () => {
  const { page, problems, append: appendEvents } = await openedDashboard()
  await appendEvents(groupStatus('tgrp_yards', 1, 0), completedRun('tgrp_yards', 'trun_1'))
  await page.getByRole('link', { name: /tgrp_yards/ }).click()
  await page.getByText('When was the yard of trun_1 founded?').click()
  await page.getByText(PASSAGE).click()

  const mark = page.locator('dialog mark')
  await mark.waitFor()
  expect(await mark.innerText()).toBe(PASSAGE)
  const isSeen = await page.evaluate(`(() => {
    const text = document.querySelector('.document-text').getBoundingClientRect()
    const mark = document.querySelector('mark').getBoundingClientRect()
    return mark.top >= text.top && mark.bottom <= text.bottom
  })()`)
  expect(isSeen).toBe(true)
  await screenshot(page, 'served-document')

  await page.keyboard.press('Escape')
  await mark.waitFor({ state: 'detached' })
  expect(await page.evaluate('document.activeElement.className')).toBe('quote')
  expect(problems).toEqual([])
})

it('searches as its user types', async () => {
  const { page, problems } = await openedDashboard()
  await goTo(page, 'Search')
  await page.getByRole('searchbox').fill('frozen river')
  await page.getByText('Found for frozen river').waitFor()
  expect(page.url()).toMatch(/#\/search\?q=frozen\+river$/)
  await page.getByText(PASSAGE).click()
  await page.locator('dialog mark').waitFor()
  await page.keyboard.press('Escape')

  await page.getByRole('searchbox').fill('')
  await page.getByRole('link', { name: 'frozen river' }).waitFor()
  expect(problems).toEqual([])
})

it('adds runs to a group of a service, and shows each when it ends', async () => {
  const docs = await mkdtemp(join(tmpdir(), 'rivulet-dashboard-docs-'))
  onTestFinished(() => rm(docs, { recursive: true, force: true }))
  const release = new Map<string, () => void>()
  const service = await createResearchService({
    docs,
    processor: {
      run: async ({ input: { input } }, signal) => {
        const name = JSON.stringify(input)
        await new Promise<void>((done, fail) => {
          release.set(name, done)
          signal.addEventListener('abort', () => fail(new Error('the service is closed')))
        })
        return { output: { type: 'text', content: `Found for ${name}`, basis: [] } }
      },
    },
  })
  onTestFinished(() => service.close())
  const client = createClient({ apiKey: service.apiKey, baseUrl: await service.listen() })
  const { taskgroup_id: group } = await client.taskGroups.create()
  await client.taskGroups.addRuns(group, { inputs: [{ input: 'the first' }] })
  const { page, problems, log } = await openedDashboard(undefined, client)
  const recording = log.record({ client, taskGroups: [group] })
  onTestFinished(() => recording.stop())

  await page.getByRole('link', { name: new RegExp(group) }).click()
  await page.getByText('0% of 1 run ended').waitFor()
  await page.getByText('Add runs').first().click()
  await page.locator('textarea').fill('Who leads it?\n{"company":"Nordhavn"}')
  await page.getByRole('button', { name: 'Add runs' }).click()
  const waiting = page.getByRole('list', { name: 'Added runs that have not ended' })
  await waiting.getByText('Who leads it?').waitFor()
  await waiting.getByText('{"company":"Nordhavn"}').waitFor()
  await page.getByText('0% of 3 runs').waitFor()
  await screenshot(page, 'served-added')

  await expect.poll(() => release.has('{"company":"Nordhavn"}')).toBe(true)
  release.get('{"company":"Nordhavn"}')?.()
  await page.getByText('Found for {"company":"Nordhavn"}').waitFor()
  await waiting.getByText('{"company":"Nordhavn"}').waitFor({ state: 'detached' })
  await waiting.getByText('Who leads it?').waitFor()
  await page.getByText('33% of 3 runs').waitFor()
  expect(await findings(page)).toEqual([])
  expect(problems).toEqual([])
})

it('shows a run without a group, and moves it to its group when that is known', async () => {
  const { page, problems, append: appendEvents } = await openedDashboard()
  const alone = (fields: Partial<TaskRun>) =>
    runEvent(
      {
        run: {
          run_id: 'trun_alone',
          status: 'completed',
          is_active: false,
          processor: 'base',
          created_at: null,
          modified_at: null,
          ...fields,
        },
      },
      'webhook',
    )
  await goTo(page, 'Runs')
  await page.getByText('No runs of their own yet').waitFor()
  await appendEvents(alone({}))
  await page.getByRole('link', { name: /trun_alone/ }).click()
  await page.getByText('The events of this run brought no output.').waitFor()

  await appendEvents(alone({ taskgroup_id: 'tgrp_yards' }))
  await page.getByText('Nothing is known of this run').waitFor()
  await goTo(page, 'Groups')
  await page.getByRole('link', { name: /tgrp_yards/ }).click()
  await page.getByText('trun_alone').waitFor()
  expect(problems).toEqual([])
})

it('says that it is stale while its server is gone, and catches up', async () => {
  const { page, problems, cut, mend, append: appendEvents } = await openedDashboard(/ERR_|Failed to load/)
  await appendEvents(groupStatus('tgrp_yards', 1, 3))
  await page.getByText('1 of 4 runs ended').waitFor()

  cut()
  await page.getByText('Connection lost.', { exact: true }).waitFor()
  await page.getByText('1 of 4 runs ended').waitFor()
  await screenshot(page, 'served-stale')
  await appendEvents(groupStatus('tgrp_yards', 4, 0))
  mend()
  await page.getByText('4 of 4 runs ended').waitFor({ timeout: 30_000 })
  await page.getByText('Connection lost.', { exact: true }).waitFor({ state: 'detached' })
  expect(problems).toEqual([])
})

it('says that its server refuses a browser whose key is gone', async () => {
  const { page, problems, context, base } = await openedDashboard(/401/)
  await context.clearCookies()
  await page.getByText('The dashboard refuses this browser.').waitFor({ timeout: 30_000 })
  expect(problems).toEqual([])

  await page.goto(base)
  await page.getByText('Open the address that the command has printed').waitFor()
})
