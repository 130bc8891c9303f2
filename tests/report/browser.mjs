// Open a page in headless Chromium, scroll through it, and say what happened as JSON.
// node browser.mjs MODULES URL SCREENSHOT; MODULES holds node_modules.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
const [modules, url, screenshot] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const load = async name => import(pathToFileURL(require.resolve(name)).href);
const { default: chromium } = await load('@sparticuz/chromium');
const playwright = require('playwright-core');
const browser = await playwright.chromium.launch({
  executablePath: await chromium.executablePath(),
  args: [...chromium.args, '--no-sandbox'], headless: true });
const page = await browser.newPage({ viewport: { width: 1200, height: 1000 } });
const errors = [], requests = [];
page.on('console', m => { if (m.type() === 'error') errors.push(m.text()); });
page.on('pageerror', e => errors.push(String(e)));
page.on('dialog', d => { errors.push(`dialog ${d.message()}`); d.dismiss(); });
page.on('request', r => { if (/^(https?|wss?):/.test(r.url())) requests.push(r.url()); });
await page.goto(url);
await page.evaluate(() => document.querySelectorAll('details')
  .forEach(d => { d.open = true; }));
const height = await page.evaluate(() => document.body.scrollHeight);
for (let y = 0; y < height; y += 700) {
  await page.evaluate(to => window.scrollTo(0, to), y);
  await page.waitForTimeout(150);
}
await page.waitForTimeout(500);
const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
const light = await paper();
await page.emulateMedia({ colorScheme: 'dark' });
const dark = await paper();
await page.emulateMedia({ colorScheme: 'light' });
await page.evaluate(() => window.scrollTo(0, 0));
await page.screenshot({ path: screenshot });
console.log(JSON.stringify({ errors, requests, light, dark,
  places: await page.locator('.figure').count(),
  drawn: await page.evaluate(() => [...document.querySelectorAll('.figure')]
    .filter(f => f.querySelector('.main-svg')).length),
  heading: await page.locator('h1').innerText(),
  links: await page.evaluate(() => [...document.links].map(a => a.href)) }));
await browser.close();
