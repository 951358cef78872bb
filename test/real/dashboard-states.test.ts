import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { startChromium } from './browser.ts'
import type { Page } from './browser.ts'
import { findings } from './dashboard/axe.ts'
import { harnessListener } from './dashboard/harness-server.ts'
import { watchedPage } from './dashboard/watched-page.ts'

const ARTIFACTS = resolve(import.meta.dirname, '../../artifacts/dashboard')

let chromium: Awaited<ReturnType<typeof startChromium>>
let base: string
let closeServer: () => Promise<void>

beforeAll(async () => {
  await mkdir(ARTIFACTS, { recursive: true })
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
  ['document-passage', '/#/group/tgrp_companies', 'Chapter 12.', openQuote(1)],
  ['document-failed', '/#/group/tgrp_companies', 'could not be loaded', openQuote(2)],
  ['document-missing', '/#/monitor/monitor_ports', 'no copy of the document', openChange],
  ['monitors', '/#/monitors', 'monitor_recalls'],
  ['monitor', '/#/monitor/monitor_ports', 'As it happened'],
  ['monitor-event', '/#/monitor/monitor_ports', 'It is new since the last run', openEvent],
  ['monitor-empty', '/?rows=empty#/monitor/monitor_ports', 'No events yet'],
  ['alerts', '/#/alerts', 'RunsSlow'],
  ['alerts-empty', '/?rows=empty#/alerts', 'No rules have run over this log'],
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
      await page.screenshot({ path: join(ARTIFACTS, `${name}-${theme}-${width}.png`) })
      const wide: number = await page.evaluate('document.documentElement.scrollWidth')
      if (wide > width) found.push(`${theme}, ${width} px: it is ${wide} px wide`)
      for (const finding of await findings(page)) found.push(`${theme}, ${width} px: ${finding}`)
    }

    expect(found).toEqual([])
    expect(problems).toEqual([])
  })
})
