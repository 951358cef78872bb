import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { startChromium } from './browser.ts'
import type { Page } from './browser.ts'
import { findings } from './dashboard/axe.ts'
import { harnessListener } from './dashboard/harness-server.ts'
import { screenshot } from './dashboard/screenshot.ts'
import { watchedPage } from './dashboard/watched-page.ts'

let chromium: Awaited<ReturnType<typeof startChromium>>
let base: string
let closeServer: () => Promise<void>

beforeAll(async () => {
  const server = createServer(await harnessListener())
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  closeServer = async () => {
    server.closeAllConnections()
    await new Promise((done) => server.close(done))
  }
  chromium = await startChromium()
})

afterAll(async () => {
  await chromium[Symbol.asyncDispose]()
  await closeServer()
})

async function open(address: string) {
  const watched = await watchedPage(chromium.context, base)
  onTestFinished(() => watched.page.close())
  // Colours that fade are of no contrast that lasts.
  await watched.page.emulateMedia({ reducedMotion: 'reduce' })
  await watched.page.goto(base + address)
  await watched.page.locator('main h1, main h2').first().waitFor({ state: 'attached' })
  return watched
}

async function openRun(page: Page): Promise<void> {
  await page.locator('.rows summary').first().click()
}

async function openForm(page: Page): Promise<void> {
  await page.locator('.add-runs summary').click()
}

function addRuns(text: string) {
  return async (page: Page) => {
    await openForm(page)
    await page.locator('.add-runs textarea').fill(text)
    await page.locator('.add-runs button').click()
  }
}

function openQuote(index: number) {
  return async (page: Page) => {
    await openRun(page)
    await page.locator('.quote').nth(index).click()
  }
}

async function openEvent(page: Page): Promise<void> {
  await page.locator('.timeline summary').first().click()
}

async function openChange(page: Page): Promise<void> {
  await page.locator('.timeline summary').getByText('berths:').first().click()
  await page.locator('.quote').first().click()
}

/** Each state of the page: where it is, a text that it shows, and what is done to reach it. */
const STATES = [
  ['overview', '/#/', 'More than 2 % of the runs'],
  ['overview-loading', '/?rows=none#/', 'Activity'],
  ['overview-empty', '/?rows=empty#/', 'No task groups yet'],
  ['overview-stale', '/?state=stale#/', 'Connection lost.'],
  ['overview-offline', '/?state=offline#/', 'No network.'],
  ['overview-offline-loading', '/?rows=none&state=offline#/', 'when the browser is online again'],
  ['overview-unreachable', '/?rows=none&state=stale#/', 'cannot be reached'],
  ['overview-denied', '/?rows=none&state=denied#/', 'The server refuses a part of this page.'],
  ['overview-refused', '/?rows=none&state=stale&refused#/', 'refuses this browser'],
  ['groups', '/#/groups', 'tgrp_patents_q3'],
  ['groups-empty', '/?rows=empty#/groups', 'No task groups yet'],
  ['group', '/#/group/tgrp_companies', 'The sources contradict each other'],
  ['group-run', '/#/group/tgrp_companies', 'Commercial register', openRun],
  ['group-hostile', '/?rows=hostile#/group/tgrp_companies', 'texts and lists are cut', openRun],
  ['group-unknown', '/?rows=empty#/group/tgrp_other', 'Nothing is known of this group'],
  ['group-loading', '/?rows=none#/group/tgrp_other', 'tgrp_other'],
  ['group-add', '/#/group/tgrp_companies', 'One input a line', openForm],
  ['group-add-problem', '/#/group/tgrp_companies', 'Line 2 is not JSON', addRuns('one\n{"a": }')],
  ['group-add-pending', '/#/group/tgrp_companies', 'Adding…', addRuns('never')],
  ['group-add-failed', '/#/group/tgrp_companies', 'Try again in 41 s.', addRuns('fail')],
  ['group-add-uncertain', '/#/group/tgrp_companies', 'It is not known whether', addRuns('cut')],
  [
    'group-added',
    '/#/group/tgrp_companies',
    'trun_added_2',
    addRuns(`Who leads it?\n{"q":"${'W'.repeat(200)}"}`),
  ],
  ['group-add-off', '/?without-service#/group/tgrp_companies', 'no connection to the service', openForm],
  ['runs', '/#/runs', 'trun_alone_1'],
  ['runs-empty', '/?rows=empty#/runs', 'No runs of their own yet'],
  ['run', '/#/run/trun_alone_1', 'not in the sources of 2026'],
  ['run-progress', '/#/run/trun_running', '12 earlier messages'],
  ['run-progress-hostile', '/?rows=hostile#/run/trun_running', 'earlier messages'],
  ['run-unknown', '/#/run/trun_other', 'Nothing is known of this run'],
  ['find-alls', '/#/find-alls', 'findall_2'],
  ['find-alls-empty', '/?rows=empty#/find-alls', 'No FindAll runs yet'],
  ['find-alls-loading', '/?rows=none#/find-alls', 'FindAll runs'],
  ['find-all', '/#/find-all/findall_cranes', '3 of 41 candidates matched'],
  ['find-all-candidate', '/#/find-all/findall_cranes', 'It was founded in 2016', openRun],
  ['find-all-citation', '/#/find-all/findall_cranes', 'Chapter 12.', openQuote(0)],
  ['find-all-hostile', '/?rows=hostile#/find-all/findall_cranes', 'texts and lists are cut', openRun],
  ['find-all-unknown', '/?rows=empty#/find-all/findall_other', 'Nothing is known of this run'],
  ['find-all-denied', '/?rows=none&state=denied#/find-all/findall_cranes', 'may not show candidates'],
  ['document-passage', '/#/group/tgrp_companies', 'Chapter 12.', openQuote(1)],
  ['document-failed', '/#/group/tgrp_companies', 'could not be loaded', openQuote(2)],
  ['document-missing', '/#/monitor/monitor_ports', 'no copy of the document', openChange],
  ['monitors', '/#/monitors', 'monitor_recalls'],
  ['monitor', '/#/monitor/monitor_ports', 'As it happened'],
  ['monitor-event', '/#/monitor/monitor_ports', 'It is new since the last run', openEvent],
  ['monitor-empty', '/?rows=empty#/monitor/monitor_ports', 'No events yet'],
  ['alerts', '/#/alerts', 'RunsSlow'],
  ['alerts-empty', '/?rows=empty#/alerts', 'No rule has had an alert'],
  ['search', '/#/search', 'Type to search'],
  ['search-results', '/#/search?q=warn', 'The mode was changed to fast.'],
  ['search-pending', '/#/search?q=never', 'Search'],
  ['search-nothing', '/#/search?q=nothing', 'Nothing found'],
  ['search-failed', '/#/search?q=fail', 'The search failed'],
  ['log', '/#/log', 'migration-2025'],
  ['log-loading', '/?rows=none#/log', 'Log'],
  ['unknown', '/#/nowhere', 'This address leads nowhere'],
] satisfies readonly (readonly [
  name: string,
  address: string,
  text: string,
  act?: (page: Page) => Promise<void>,
])[]

const LOOKS = [
  { theme: 'light', width: 1280 },
  { theme: 'dark', width: 1280 },
  { theme: 'light', width: 320 },
  { theme: 'dark', width: 320 },
] as const

describe('the page', () => {
  it.each(STATES)('has no finding of axe and fits its window as %s', async (...state) => {
    const [name, address, text, act] = state
    const { page, problems } = await open(address)
    await act?.(page)
    await page.getByText(text).last().waitFor()

    const found: string[] = []
    for (const { theme, width } of LOOKS) {
      await page.setViewportSize({ width, height: width === 320 ? 720 : 900 })
      await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' })
      // A plot is drawn again in the frame after the one that has its new width.
      await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
      await screenshot(page, `${name}-${theme}-${width}`)
      const wide: number = await page.evaluate('document.documentElement.scrollWidth')
      if (wide > width) found.push(`${theme}, ${width} px: it is ${wide} px wide`)
      for (const finding of await findings(page)) found.push(`${theme}, ${width} px: ${finding}`)
    }

    expect(found).toEqual([])
    expect(problems).toEqual([])
  })
})

it.each([
  ['no run', '', []],
  ['a run', '/trun_000004', ['trun_000004']],
  ['a run that another one has replaced', '/trun_000005_first', ['trun_000005']],
])('opens what the address of a group names: %s', async (_, run, opened) => {
  const { page } = await open(`/#/group/tgrp_companies${run}`)
  await page.getByText('attempt 2').first().waitFor()

  const ids = page.locator('.rows details[open] .row-body .mono')
  expect(await ids.allInnerTexts()).toEqual(opened)
})

it('shows a run of a service that leaves out what the interface promises', async () => {
  const { page, problems } = await open('/#/group/tgrp_companies')
  await page.evaluate(`for (const [id, processor, error] of [['nulls', null, { message: null }], ['others', 7, { message: { a: 1 } }]]) {
    harness.setRow('group?group=tgrp_companies', 'tgrp_companies/' + id, {
      kind: 'run', output: null, recorded: Date.now(),
      run: { run_id: id, status: 'failed', is_active: false, processor, error },
    })
  }`)
  for (const id of ['nulls', 'others']) await page.locator(`summary:has-text("${id}")`).click()

  // A body comes with a frame after its row is open.
  await expect.poll(() => page.locator('.rows details[open] .row-body').count(), { timeout: 60_000 }).toBe(2)
  expect(problems).toEqual([])
})

/** What has the focus, as a screen reader names it, about. */
function focused(page: Page): Promise<string> {
  return page.evaluate(
    `(document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText).trim().split('\\n')[0]`,
  )
}

/** Waits until the element with this text has the focus. The page's policy forbids what Playwright waits with. */
async function focusOn(page: Page, text: string): Promise<void> {
  const focusedText = () => page.evaluate('document.activeElement.innerText')
  await expect.poll(focusedText, { timeout: 60_000 }).toBe(text)
}

/** Presses Tab until this has the focus. Throws where that is not seen. */
async function tabTo(page: Page, name: RegExp): Promise<void> {
  for (let presses = 0; presses < 60; presses += 1) {
    await page.keyboard.press('Tab')
    if (!name.test(await focused(page))) continue
    const outline = await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')
    if (outline === 'none') throw new Error(`the focus on ${String(name)} is not seen`)
    return
  }
  throw new Error(`Tab does not come to ${String(name)}`)
}

describe('a user without a pointer', () => {
  it('skips the header', async () => {
    const { page } = await open('/#/')
    await tabTo(page, /^Skip to the content$/)
    await page.keyboard.press('Enter')
    expect(await page.evaluate('document.activeElement.id')).toBe('main')
    expect(page.url()).toMatch(/#\/$/)
  })

  it('reaches a quotation in its document, and comes back to where the focus was', async () => {
    const { page } = await open('/#/')
    await tabTo(page, /^Groups$/)
    await page.keyboard.press('Enter')
    await focusOn(page, 'Task groups')
    await tabTo(page, /^tgrp_companies/)
    await page.keyboard.press('Enter')
    await focusOn(page, 'tgrp_companies')
    await tabTo(page, /^completed$/)
    await page.keyboard.press('Enter')
    await page.locator('.quote').first().waitFor()
    await tabTo(page, /^It was founded in 2016/)
    await page.keyboard.press('Enter')
    await focusOn(page, 'About Nordhavn Robotics')
    for (let presses = 0; presses < 6; presses += 1) {
      await page.keyboard.press('Tab')
      expect(await page.evaluate(`document.activeElement.closest('dialog, body').tagName`)).toMatch(
        /^(DIALOG|BODY)$/,
      )
      expect(await page.evaluate(`document.activeElement.closest('main, header.top')`)).toBeNull()
    }
    await page.keyboard.press('Escape')
    expect(await focused(page)).toMatch(/^It was founded in 2016/)
  })

  it('reads a plot slice by slice', async () => {
    const { page } = await open('/#/')
    await page.locator('.plot-focus').first().focus()
    await page.keyboard.press('Home')
    const first = await page.locator('.plot-readout').first().innerText()
    await page.keyboard.press('ArrowRight')
    const second = await page.locator('.plot-readout').first().innerText()
    expect(first).toMatch(/Runs \d+/)
    expect(second).not.toBe(first)
  })
})

it('announces a lost connection and alerts to a screen reader, and nothing else that changes', async () => {
  const { page } = await open('/#/group/tgrp_companies')
  await page.getByText('Connected. The page is live.').waitFor({ state: 'attached' })
  await page.evaluate(`{
    window.said = []
    const watch = (node) => new MutationObserver(() => window.said.push(node.innerText))
      .observe(node, { subtree: true, childList: true, characterData: true })
    for (const node of document.querySelectorAll('[role=status], [aria-live]')) watch(node)
    for (let index = 0; index < 50; index += 1) {
      harness.setRow('group?group=tgrp_companies', 'tgrp_companies', {
        kind: 'group', updated: Date.now(), status: {
          num_task_runs: 1000, is_active: true, status_message: '', modified_at: null,
          task_run_status_counts: { completed: 812 + index, queued: 188 - index },
        },
      })
    }
    harness.setState('stale')
  }`)
  await page.getByText('861 completed').waitFor()
  await page.getByText('Connection lost. Reconnecting.').waitFor({ state: 'attached' })
  expect(await page.evaluate('said')).toEqual(['Connection lost. Reconnecting.'])
})

it('adds runs by the keyboard alone, names what is wrong, and shows what was added until it ends', async () => {
  const { page, problems } = await open('/#/group/tgrp_companies')
  const element = () => page.evaluate<string>('document.activeElement.localName')
  await page.locator('.add-runs summary').focus()
  await page.keyboard.press('Enter')
  await page.keyboard.press('Tab')
  expect(await element()).toBe('textarea')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.locator('[role=alert]').getByText('Write at least one input.').waitFor()
  expect(await element()).toBe('textarea')
  expect(await page.evaluate('document.activeElement.getAttribute("aria-invalid")')).toBe('true')

  await page.keyboard.type('Who leads it?')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.locator('[role=status]').getByText('1 run was added.').waitFor({ state: 'attached' })
  const waiting = page.getByRole('list', { name: 'Added runs that have not ended' })
  await waiting.getByText('Who leads it?').waitFor()
  expect(await page.evaluate('document.querySelector("textarea").value')).toBe('')

  await page.evaluate(`harness.setRow('group?group=tgrp_companies', 'tgrp_companies/trun_added_1', {
    kind: 'run', output: null, input: { input: 'Who leads it?' }, recorded: Date.now(),
    run: { run_id: 'trun_added_1', status: 'completed', is_active: false, processor: 'base', created_at: null, modified_at: null },
  })`)
  await page.getByText('1 of 1 has ended.').waitFor()
  await waiting.waitFor({ state: 'detached' })
  expect(await page.getByText('Who leads it?').count()).toBe(1)
  expect(problems).toEqual([])
})

it('runs nothing of what the service sends, and links only to pages', async () => {
  const { page, problems } = await open('/?rows=hostile#/group/tgrp_companies')
  await openRun(page)
  await page.getByText('texts and lists are cut').waitFor()
  expect(await page.title()).toBe('tgrp_companies · Task groups · Rivulet')
  expect(await page.locator('main :is(script, img, iframe, style)').count()).toBe(0)
  const links: string[] = await page.evaluate(
    `[...document.querySelectorAll('main a[target]')].map(({ protocol, username, rel }) => [protocol, username, rel].join())`,
  )
  expect(new Set(links)).toEqual(new Set(['https:,,noopener noreferrer']))
  expect(problems).toEqual([])
})

it('shows no text that hides a character, or turns what follows around', async () => {
  const { page, problems } = await open('/?rows=turned#/')
  const sections: readonly (readonly [address: string, act?: (page: Page) => Promise<void>])[] = [
    ['/'],
    ['/groups'],
    ['/group/tgrp_companies', openQuote(0)],
    ['/runs'],
    ['/run/trun_alone_1'],
    ['/run/trun_running'],
    ['/find-alls'],
    ['/find-all/findall_cranes', openQuote(0)],
    ['/monitors'],
    ['/monitor/monitor_ports', openEvent],
    ['/alerts'],
    ['/search'],
    [`/search?q=${encodeURIComponent('\u202E')}`],
    ['/log'],
  ]
  const found: string[] = []
  for (const [address, act] of sections) {
    await page.goto(`${base}/?rows=turned#${address}`)
    await page.reload()
    await page.getByText('\\u202e').first().waitFor({ state: 'attached' })
    await act?.(page)
    const shown: string[] =
      await page.evaluate(`[...document.querySelectorAll('title, body, body *')].flatMap((element) => [
      ...[...element.childNodes].filter(({ nodeType }) => nodeType === Node.TEXT_NODE).map(({ data }) => data),
      ...['title', 'aria-label', 'alt'].map((name) => element.getAttribute(name) ?? ''),
    ])`)
    const isTurned = (text: string) => text.includes('\u202E') || text.includes('\u0007')
    found.push(...shown.filter(isTurned).map((text) => `${address}: ${text}`))
  }
  expect(found).toEqual([])
  expect(problems).toEqual([])
})

it('renders a part of thousands of rows, and more when asked', async () => {
  const { page } = await open('/?rows=many#/group/tgrp_companies')
  await page.getByText('10,000').first().waitFor()
  expect(await page.locator('.rows > li').count()).toBe(50)
  await page.getByRole('button', { name: 'Show 50 more' }).click()
  expect(await page.locator('.rows > li').count()).toBe(100)
  await page.getByRole('button', { name: /^failed/ }).click()
  expect(await page.locator('.rows > li').count()).toBe(50)

  await page.goto(`${base}/?rows=many#/monitor/monitor_ports`)
  await page.getByRole('button', { name: 'Show 60 more' }).waitFor()
  expect(await page.locator('.timeline > li').count()).toBe(60)
  expect(Number(await page.evaluate(`document.querySelectorAll('.time-axis rect').length`))).toBeLessThan(500)
})

it('keeps the colours that its user has chosen', async () => {
  const { page } = await open('/#/')
  const ground = () => page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor')
  await page.emulateMedia({ colorScheme: 'light' })
  const light = await ground()
  await page.locator('.theme').getByText('Dark').click({ force: true })
  const dark = await ground()
  expect(dark).not.toBe(light)
  await page.reload()
  await page.locator('main h1').waitFor({ state: 'attached' })
  expect(await ground()).toBe(dark)
  await page.locator('.theme').getByText('As the system').click({ force: true })
  expect(await ground()).toBe(light)
})

it('has an address for each thing that it shows', async () => {
  const { page } = await open('/#/group/tgrp_companies/trun_000003')
  await page.locator('details[open]').getByText('trun_000003').waitFor()
  await page.getByRole('link', { name: 'Monitors' }).click()
  await page.getByRole('link', { name: /monitor_ports/ }).click()
  await page.getByText('As it happened').waitFor()
  expect(page.url()).toMatch(/#\/monitor\/monitor_ports$/)
  expect(await page.title()).toBe('monitor_ports · Monitors · Rivulet')
  await page.goBack()
  await page.goBack()
  await page.locator('details[open]').getByText('trun_000003').waitFor()
})
