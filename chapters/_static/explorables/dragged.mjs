// What is moved in a drawing itself, by finger and mouse.

/** Call with the place in the drawing wherever a finger or the mouse is pressed on it, and with whether it begins.
 *  What goes sideways only leaves the page a finger that moves up or down. */
export function dragged(drawing, part, move, sideways = false) {
  const at = (event) => {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(drawing.getScreenCTM().inverse());
    move(place.x, place.y, event.type === "pointerdown");
  };
  let ours, start; // whether this part moves, and where a finger began: its first move tells
  // A finger that begins on it does not move the page: for a part of a drawing `touch-action` is not enough.
  part.style.touchAction = sideways ? "pan-y" : "none";
  part.addEventListener("pointerdown", (event) => {
    ours = !sideways || event.pointerType !== "touch";
    event.preventDefault();
    part.setPointerCapture(event.pointerId);
    if (ours) at(event);
  });
  part.addEventListener("touchstart", (event) => {
    start = event.touches[0];
    if (ours) event.preventDefault();
  }, { passive: false });
  part.addEventListener("touchmove", (event) => {
    const { clientX, clientY } = event.touches[0];
    ours ||= start && Math.abs(clientX - start.clientX) > Math.abs(clientY - start.clientY);
    start = undefined;
    if (ours) event.preventDefault();
  }, { passive: false });
  part.addEventListener("pointermove", (event) => { if (ours && part.hasPointerCapture(event.pointerId)) at(event); });
}
