// A link to a part that is folded opens it.
function unfold() {
  const part = location.hash && document.getElementById(location.hash.slice(1));
  const fold = part && part.querySelector('details.part');
  if (fold) { fold.open = true; part.scrollIntoView(); }
}
addEventListener('hashchange', unfold);
document.querySelectorAll('nav a').forEach(a => a.addEventListener('click',
  () => setTimeout(unfold)));
unfold();
